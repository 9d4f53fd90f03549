//! The memory and table limiter of one store. Counts the sum over all memories, and says in the error what
//! was asked for: a plain refusal would reach the plugin's author as `unreachable`.

use thiserror::Error;
use wasmtime::ResourceLimiter;

use super::limits::Limits;

/// More than the call may have.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum LimitExceeded {
    /// Linear memory.
    #[error("it asked for {wanted} bytes of memory; memory_max allows {max}")]
    Memory { wanted: u64, max: u64 },
    /// Table elements.
    #[error("it asked for {wanted} table elements; at most {max} are allowed")]
    Table { wanted: usize, max: usize },
}

/// Counts what one store holds.
#[derive(Debug)]
pub(super) struct Limiter {
    memory_bytes: u64,
    memory_bytes_max: u64,
    table_elements: usize,
    table_elements_max: usize,
    instances_max: usize,
    memories_max: usize,
    tables_max: usize,
}

impl Limiter {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            memory_bytes: 0,
            memory_bytes_max: limits.memory_max,
            table_elements: 0,
            table_elements_max: limits.table_elements_max,
            instances_max: limits.instances_max,
            memories_max: limits.memories_max,
            tables_max: limits.tables_max,
        }
    }

    /// Bytes of all memories together. Memories never shrink, so this is the peak.
    pub(super) fn memory_peak(&self) -> u64 {
        self.memory_bytes
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            // The module's own bound: growing fails as the specification says.
            return Ok(false);
        }
        let wanted = self.memory_bytes.saturating_add((desired - current) as u64);
        if wanted > self.memory_bytes_max {
            return Err(LimitExceeded::Memory {
                wanted,
                max: self.memory_bytes_max,
            }
            .into());
        }
        self.memory_bytes = wanted;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let wanted = self.table_elements.saturating_add(desired - current);
        if wanted > self.table_elements_max {
            return Err(LimitExceeded::Table {
                wanted,
                max: self.table_elements_max,
            }
            .into());
        }
        self.table_elements = wanted;
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances_max
    }

    fn tables(&self) -> usize {
        self.tables_max
    }

    fn memories(&self) -> usize {
        self.memories_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_summed_and_the_refusal_says_how_much_was_asked_for() {
        let mut limiter = Limiter::new(&Limits {
            memory_max: 1000,
            table_elements_max: 10,
            ..Limits::default()
        });
        assert!(limiter.memory_growing(0, 600, None).expect("fits"));
        let refused = limiter.memory_growing(0, 401, None).expect_err("too much");
        assert_eq!(
            refused.downcast_ref(),
            Some(&LimitExceeded::Memory {
                wanted: 1001,
                max: 1000
            })
        );
        assert!(limiter.memory_growing(600, 1000, None).expect("fits"));
        assert!(!limiter.memory_growing(0, 9, Some(8)).expect("own bound"));
        assert_eq!(limiter.memory_peak(), 1000);
        assert!(limiter.table_growing(0, 10, None).expect("fits"));
        assert!(limiter.table_growing(0, 1, None).is_err());
    }
}
