//! The shapes that nearly all of a compiler's output has, read in one go over the bytes: instructions whose operands are
//! registers, numbers, plain addresses and vectors of those, and the numbers of tables.
//!
//! It knows nothing that the grammar does not know, and reports nothing: what it does not take, the grammar reads from
//! the same place on, errors included. `both_ways_give_one_tree` holds the two together.

use super::Parser;
use crate::ptx::List;
use crate::ptx::ast::{Address, Guard, InitValue, Instruction, Operand, Sequence, Statement, Word};
use crate::ptx::eight::Eight;
use crate::ptx::lex::{self, Number};
use crate::span::Span;

impl<'a> Parser<'a> {
    /// Reads an instruction or a label, or leaves everything as it was and says no.
    #[inline]
    pub(super) fn quick_statement(&mut self, out: &mut Vec<Statement<'a>>) -> bool {
        if !self.is_quick {
            return false;
        }
        let start = self.pos;
        let mut cursor = Cursor { text: self.text, at: start };
        if cursor.byte() == b'$' {
            let Some(label) = cursor.label() else { return false };
            let end = label.span.end as usize + ":".len();
            (self.pos, self.end_of_last) = (end, end);
            out.push(Statement::Label(label));
            return true;
        }
        let Some((guard, opcode, words)) = cursor.head() else { return false };
        out.push(Statement::Instruction(Instruction::BLANK));
        let Some(Statement::Instruction(instruction)) = out.last_mut() else { return false };
        if cursor.operands(&mut instruction.operands).is_none() {
            out.pop();
            return false;
        }
        (instruction.guard, instruction.opcode, instruction.words) = (guard, opcode, words);
        instruction.span = Span::new(start, cursor.at);
        (self.pos, self.end_of_last) = (cursor.at, cursor.at);
        true
    }

    /// Reads a number of an initialiser, or leaves everything as it was and says no.
    #[inline]
    pub(super) fn quick_value(&mut self, values: &mut Vec<InitValue<'a>>) -> bool {
        if !self.is_quick {
            return false;
        }
        let mut cursor = Cursor { text: self.text, at: self.pos };
        cursor.blanks();
        let Some(number) = cursor.number() else { return false };
        let end = cursor.at;
        cursor.blanks();
        if !matches!(cursor.byte(), b',' | b'}') {
            return false;
        }
        values.push(match number {
            Number::Int(value) => InitValue::Int(value.into()),
            Number::F32(bits) => InitValue::F32(bits),
            Number::F64(bits) => InitValue::F64(bits),
        });
        (self.pos, self.end_of_last) = (end, end);
        true
    }
}

/// Guard, opcode and the text of the modifiers.
type Head<'a> = (Option<Box<Guard<'a>>>, Word<'a>, &'a str);

/// A place in the text, moved over what has been read.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The byte that comes next; at the end NUL, with which nothing here begins.
    #[inline]
    fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn blanks(&mut self) {
        while matches!(self.byte(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// Takes a byte that has to come next.
    #[inline]
    fn mark(&mut self, mark: u8) -> Option<()> {
        (self.byte() == mark).then(|| self.at += 1)
    }

    /// Takes what can be part of a name; how many bytes. Near the end of the text it says `None`.
    #[inline(always)]
    fn name_bytes(&mut self) -> Option<usize> {
        let start = self.at;
        loop {
            let length = Eight::at(self.text.as_bytes(), self.at)?.name().leading();
            self.at += length;
            if length < 8 {
                return Some(self.at - start);
            }
        }
    }

    #[inline]
    fn word(&self, start: usize) -> Option<Word<'a>> {
        Some(Word { text: self.text.get(start..self.at)?, span: Span::new(start, self.at) })
    }

    /// What stands in front of the operands, up to the first operand or the `;`.
    #[inline]
    fn head(&mut self) -> Option<Head<'a>> {
        let guard = if self.byte() == b'@' { Some(Box::new(self.guard()?)) } else { None };
        let start = self.at;
        if !self.byte().is_ascii_alphabetic() {
            return None;
        }
        let (mut first_dot, mut behind_dot) = (None, false);
        loop {
            let eight = Eight::at(self.text.as_bytes(), self.at)?;
            let dots = eight.is(b'.');
            let length = eight.word().or(dots).leading();
            let dots = dots.of_first(length);
            if dots.touch(behind_dot) {
                return None;
            }
            if first_dot.is_none() && dots.any() {
                first_dot = Some(self.at + dots.first());
            }
            self.at += length;
            if length < 8 {
                break;
            }
            behind_dot = dots.last();
        }
        if self.byte() == b':' {
            first_dot?;
            self.rest_with_colons()?;
        }
        let end = self.at;
        let dot = first_dot.unwrap_or(end);
        let opcode = Word { text: self.text.get(start..dot)?, span: Span::new(start, dot) };
        let words = self.text.get(dot..end)?;
        if words.ends_with('.') {
            return None;
        }
        match self.byte() {
            b';' => {}
            b' ' | b'\t' | b'\n' | b'\r' => self.blanks(),
            _ => return None,
        }
        Some((guard, opcode, words))
    }

    /// The rest of an opcode, of which a word has `::`.
    #[cold]
    fn rest_with_colons(&mut self) -> Option<()> {
        let mut behind = self.text.as_bytes().get(self.at - 1).copied()?;
        loop {
            let byte = self.byte();
            match byte {
                b':' => {
                    self.at += 1;
                    self.mark(b':')?;
                    if behind == b'.' || !lex::is(self.byte(), lex::WORD) {
                        return None;
                    }
                }
                b'.' if behind == b'.' => return None,
                b'.' => self.at += 1,
                _ if lex::is(byte, lex::WORD) => self.at += 1,
                _ => return Some(()),
            }
            behind = byte;
        }
    }

    /// A label that is followed by no directive, which might be its own.
    fn label(&mut self) -> Option<Word<'a>> {
        let start = self.at;
        self.mark(b'$')?;
        if self.name_bytes()? == 0 {
            return None;
        }
        let label = self.word(start)?;
        self.mark(b':')?;
        self.blanks();
        matches!(self.byte(), b'%' | b'@' | b'$' | b'{' | b'}' | b'a'..=b'z').then_some(label)
    }

    fn guard(&mut self) -> Option<Guard<'a>> {
        let at = self.at;
        self.mark(b'@')?;
        let negated = self.mark(b'!').is_some();
        let start = self.at;
        if !matches!(self.byte(), b'%' | b'a'..=b'z' | b'A'..=b'Z') {
            return None;
        }
        self.at += 1;
        if self.name_bytes()? == 0 {
            return None;
        }
        let register = self.word(start)?;
        let span = Span::new(at, self.at);
        self.blanks();
        Some(Guard { register, negated, span })
    }

    /// Operands with the `;` behind them.
    #[inline]
    fn operands(&mut self, out: &mut List<Operand<'a>>) -> Option<()> {
        if self.byte() == b';' {
            self.at += 1;
            return Some(());
        }
        loop {
            match out.next_place() {
                Some(place) => self.operand(place)?,
                None => {
                    let mut operand = Operand::BLANK;
                    self.operand(&mut operand)?;
                    out.push(operand);
                }
            }
            let next = self.byte();
            self.at += 1;
            match next {
                b',' => self.blanks(),
                b';' => return Some(()),
                _ => return None,
            }
        }
    }

    /// An operand, into its place, and the blanks behind it.
    #[inline]
    fn operand(&mut self, out: &mut Operand<'a>) -> Option<()> {
        match self.byte() {
            b'[' => *out = self.address()?,
            b'{' => *out = self.vector()?,
            _ => self.plain(out)?,
        }
        self.blanks();
        if self.byte() == b'|' { self.pair(out) } else { Some(()) }
    }

    /// The second half of `p|q`. Behind a number `|` is an operator.
    fn pair(&mut self, out: &mut Operand<'a>) -> Option<()> {
        if matches!(out, Operand::Int(..) | Operand::F32(..) | Operand::F64(..)) {
            return None;
        }
        self.mark(b'|')?;
        self.blanks();
        let mut second = Operand::BLANK;
        self.plain(&mut second)?;
        self.blanks();
        let first = std::mem::take(out);
        let span = first.span().to(second.span());
        *out = Operand::Pair(Box::new([first, second]), span);
        (self.byte() != b'|').then_some(())
    }

    /// A name or a number.
    #[inline]
    fn plain(&mut self, out: &mut Operand<'a>) -> Option<()> {
        let start = self.at;
        match self.byte() {
            b'0'..=b'9' | b'-' => {
                let number = self.number()?;
                let span = Span::new(start, self.at);
                *out = match number {
                    Number::Int(value) => Operand::Int(value.into(), span),
                    Number::F32(bits) => Operand::F32(bits, span),
                    Number::F64(bits) => Operand::F64(bits, span),
                };
            }
            b'_' if !lex::is(self.text.as_bytes().get(start + 1).copied().unwrap_or(0), lex::NAME) => {
                self.at += 1;
                *out = self.word(start)?.into();
            }
            _ => *out = self.name()?.into(),
        }
        Some(())
    }

    /// A name, with its member. `WARP_SZ` is a number.
    #[inline(always)]
    fn name(&mut self) -> Option<Word<'a>> {
        let start = self.at;
        match self.byte() {
            b'%' | b'$' | b'_' => {
                self.at += 1;
                if self.name_bytes()? == 0 {
                    return None;
                }
            }
            b'W' => return None,
            first if first.is_ascii_alphabetic() => drop(self.name_bytes()?),
            _ => return None,
        }
        if self.byte() == b'.' {
            self.at += 1;
            if !self.byte().is_ascii_alphabetic() {
                return None;
            }
            self.name_bytes()?;
        }
        self.word(start)
    }

    /// A number with its sign.
    #[inline]
    fn number(&mut self) -> Option<Number> {
        let negative = self.mark(b'-').is_some();
        let (number, length) = lex::usual_number(self.text.as_bytes().get(self.at..)?)?;
        self.at += length;
        Some(match number {
            _ if !negative => number,
            Number::Int(value) => Number::Int(-value),
            Number::F32(bits) => Number::F32(bits ^ 1 << 31),
            Number::F64(bits) => Number::F64(bits ^ 1 << 63),
        })
    }

    /// `[base]`, `[base+offset]`
    #[inline]
    fn address(&mut self) -> Option<Operand<'a>> {
        let start = self.at;
        self.mark(b'[')?;
        let base = Some(self.name()?);
        let offset = match self.byte() {
            b'+' => {
                self.at += 1;
                self.offset()?
            }
            b'-' => self.offset()?,
            _ => 0,
        };
        self.mark(b']')?;
        let span = Span::new(start, self.at);
        Some(Operand::Address(Box::new(Address { base, offset, extra: Box::default(), span })))
    }

    fn offset(&mut self) -> Option<i64> {
        match self.number()? {
            Number::Int(value) => Some(value as i64),
            Number::F32(_) | Number::F64(_) => None,
        }
    }

    /// `{a, b}`
    fn vector(&mut self) -> Option<Operand<'a>> {
        let start = self.at;
        self.mark(b'{')?;
        let mut items = Box::new(Sequence::BLANK);
        loop {
            self.blanks();
            match items.items.next_place() {
                Some(place) => self.plain(place)?,
                None => {
                    let mut item = Operand::BLANK;
                    self.plain(&mut item)?;
                    items.items.push(item);
                }
            }
            self.blanks();
            match self.byte() {
                b',' => self.at += 1,
                b'}' => break,
                _ => return None,
            }
        }
        self.mark(b'}')?;
        items.span = Span::new(start, self.at);
        Some(Operand::Vector(items))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use crate::ptx::parse::parse_by;

    fn texts() -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let files =
            |folder: &str| fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let folders = ["ptx-samples/race", "ptx-samples/clean", "benches/kernels", "tests/forms"];
        let mut paths: Vec<PathBuf> = folders.into_iter().flat_map(files).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
        paths.sort();
        paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    fn assert_same(text: &str) {
        let (quick, slow) = (parse_by(text, true), parse_by(text, false));
        assert!(format!("{quick:?}") == format!("{slow:?}"), "two trees of {text}");
    }

    #[test]
    fn both_ways_give_one_tree() {
        let texts = texts();
        assert!(texts.len() > 100);
        texts.iter().for_each(|text| assert_same(text));
        let lines = [
            "add.s32 %r1, %r2, -3;",
            "mov.b32 %r1, 0xFFU; mov.b32 %r1, 12345678; mov.u64 %rd1, 123456789012345;",
            "mov.f64 %fd1, 0dBFF0000000000000; mov.f32 %f1, -0f3F800000; mov.b32 %r1, 017;",
            "shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1; tex.1d.v4.f32.s32 {%r1, _, %r2, 7}, [t, {%r1}];",
            "mov.b64 %rd1, 1234567890123456789; mov.u32 %r1, WARP_SZ; mov.u32 %r1, %tid.x; mov.u32 %r1, %v. x;",
            "$L: mov.u32 %r1, 1; $M: .branchtargets $L; $N : bra $L; $O: } ld.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1+-16];",
            "ld.const[2].u32 %r1, [%rd1-4]; ld . global.u32 %r1, [tab+8]; ld.shared::cta.u32 %r1, [%r1 + 8];",
            "a..b c; a.:: b; a::b c; a.b:c d; a.b::c.d::e f; a.b::.c d; a. b; a.b. c; a.b.;",
            "mov.u32 %r1, 4|3; mov.u32 %r1, 1 | 0f3F800000; setp.eq.u32 p|4, a, 1|2|3; mov.u32 %r1, {1|2};",
            "setp.eq.u32 p | q, a, b; setp.eq.u32 p|q|r, a, b; @!p bra X; @ p bra X; add a, b",
        ];
        for line in lines {
            for more in ["", "\n\n// a comment that is long enough\n"] {
                assert_same(&format!(
                    ".version 9.0\n.func f() {{ {line}{more}}}\n.global .u32 t[] = {{1, 2,3}};"
                ));
            }
        }
        let values = "1, -1, 0x1f, 0xFF00(t), 0f3F800000, -0d3FF0000000000000, 1.5, t+4, generic(t), 99999999, 7U, 1+2, {3}";
        assert_same(&format!(
            ".global .u32 t[] = {{{values}}};\n.global .u8 u[2][2] = {{{{1,2}},{{3,4}}}};\n// end"
        ));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn both_ways_give_one_tree_of_damaged_texts(
            file in any::<prop::sample::Index>(),
            from in any::<prop::sample::Index>(),
            damages in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, r"[ \n\t{};,.:\[\]()|!+\-_%$@<>/*#0-9a-fxUW\x00é]{0,3}"), 0..5),
        ) {
            thread_local!(static TEXTS: Vec<String> = texts());
            let mut piece: Vec<char> = TEXTS.with(|texts| {
                let text = file.get(texts);
                text.chars().skip(from.index(text.len())).take(600).collect()
            });
            for (at, cut, new) in damages {
                let at = at.index(piece.len().max(1)).min(piece.len());
                let end = (at + cut).min(piece.len());
                piece.splice(at..end, new.chars());
            }
            let piece: String = piece.into_iter().collect();
            assert_same(&piece);
            assert_same(&format!(".version 9.0\n.entry k() {{ {piece} }}"));
        }
    }
}
