//! The cells of a batch's writes, one run after the other in large pieces, so that a list of them takes no more room
//! than it needs and no list is ever moved.

use crate::contract::{Cell, List, Text};
use crate::value::Value;

/// Cells in the first piece. Each is twice as large as the one before, up to a bound.
const PIECE_MIN: usize = 32;
const PIECE_MAX: usize = 512;

const BLANK: Cell = Cell {
    column: Text::new(""),
    value: Value::Null,
};

/// The run that is being built, in front of room for more.
#[derive(Debug, Default)]
pub(super) struct Cells {
    piece: &'static mut [Cell],
    length: usize,
    /// How long the last piece was.
    last: usize,
}

impl Cells {
    /// Begins a run; one that was not ended is forgotten.
    pub(super) fn begin(&mut self) {
        self.length = 0;
    }

    #[inline(always)]
    pub(super) fn push(&mut self, cell: Cell) {
        if self.length == self.piece.len() {
            self.make_room();
        }
        self.piece[self.length] = cell;
        self.length += 1;
    }

    /// Ends the run.
    pub(super) fn end(&mut self) -> List<Cell> {
        let piece = std::mem::take(&mut self.piece);
        let (run, rest) = piece.split_at_mut(self.length);
        self.piece = rest;
        self.length = 0;
        List::new(run)
    }

    #[cold]
    fn make_room(&mut self) {
        self.last = (2 * self.last).clamp(PIECE_MIN, PIECE_MAX);
        let mut piece = vec![BLANK; self.last.max(2 * self.length)];
        piece[..self.length].copy_from_slice(&self.piece[..self.length]);
        self.piece = piece.leak();
    }
}

#[cfg(test)]
mod tests {
    use super::{Cells, PIECE_MAX, PIECE_MIN};
    use crate::contract::{Cell, Text};
    use crate::value::Value;

    #[test]
    fn runs_keep_their_cells_over_the_ends_of_pieces() {
        let mut cells = Cells::default();
        let cell = |number: usize| Cell {
            column: Text::new("n"),
            value: Value::Int(number as i64),
        };
        let lengths = [
            0,
            1,
            7,
            PIECE_MIN - 3,
            PIECE_MIN,
            PIECE_MAX - 3,
            PIECE_MAX,
            3 * PIECE_MAX,
            2,
            0,
            5,
        ];
        let runs = lengths.map(|length| {
            cells.begin();
            cells.push(cell(usize::MAX));
            cells.begin();
            (0..length).for_each(|number| cells.push(cell(number)));
            cells.end()
        });
        for (run, length) in runs.iter().zip(lengths) {
            assert!(run.iter().copied().eq((0..length).map(cell)), "{length}");
        }
    }
}
