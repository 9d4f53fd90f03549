//! The cells of a batch's writes, one run after the other in large pieces, so that a list of them takes no more room
//! than it needs and no list is ever moved.

use crate::contract::{Cell, List, Text};
use crate::value::Value;

/// Cells in a piece; a longer run gets a piece of its own.
const PIECE: usize = 512;

const BLANK: Cell = Cell {
    column: Text::new(""),
    value: Value::Null,
};

/// The run that is being built, in front of room for more.
#[derive(Debug, Default)]
pub(super) struct Cells {
    piece: &'static mut [Cell],
    length: usize,
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
        let mut piece = vec![BLANK; PIECE.max(2 * self.length)];
        piece[..self.length].copy_from_slice(&self.piece[..self.length]);
        self.piece = piece.leak();
    }
}

#[cfg(test)]
mod tests {
    use super::{Cells, PIECE};
    use crate::contract::{Cell, Text};
    use crate::value::Value;

    #[test]
    fn runs_keep_their_cells_over_the_ends_of_pieces() {
        let mut cells = Cells::default();
        let cell = |number: usize| Cell {
            column: Text::new("n"),
            value: Value::Int(number as i64),
        };
        let lengths = [0, 1, 7, PIECE - 3, PIECE, 3 * PIECE, 2, 0, 5];
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
