//! A line against its words one by one, and what the words say.

use proptest::prelude::*;

use super::Doubt;
use super::cell::{Cell, Class, Now};
use super::line::{Line, Pattern, Pool, WORDS};

#[derive(Clone, Copy, Debug)]
struct Access {
    now: Now,
    words: u32,
    pattern: Pattern,
}

/// Words one by one, in the order of the accesses.
fn by_words(accesses: &[Access]) -> Vec<Result<(), Doubt>> {
    let mut cells = [Cell::default(); WORDS];
    let mut one = |access: &Access| {
        for (word, cell) in cells.iter_mut().enumerate() {
            if access.words >> word & 1 != 0 {
                *cell = cell.step(&access.now, access.pattern.lanes(word))?;
            }
        }
        Ok(())
    };
    accesses.iter().map(&mut one).collect()
}

fn by_line(accesses: &[Access]) -> Vec<Result<(), Doubt>> {
    let (mut line, mut pool) = (Line::default(), Pool::default());
    let mut one = |access: &Access| line.access(&access.now, access.words, access.pattern, &mut pool);
    accesses.iter().map(&mut one).collect()
}

/// Reads a list such as `0.1 w 3, | 0.1 r row`: block and warp; `r`, `n`, `w`, `a` for kinds of access, in the first words; the
/// lane, `row` or `all`. A bar is a barrier of the block, a dash one of the warp.
fn accesses(text: &str, global: bool) -> Vec<Access> {
    let (mut interval, mut sub, mut out) = (0, 0, Vec::new());
    for step in text.split(", ") {
        let words: Vec<_> = step.split(' ').collect();
        match words.as_slice() {
            ["|"] => (interval, sub) = (interval + 1, 0),
            ["-"] => sub += 1,
            [who, class, lanes] => {
                let (block, warp) = who.split_once('.').unwrap();
                let class = match *class {
                    "r" => Class::Read,
                    "n" => Class::NonCoherent,
                    "w" => Class::Write,
                    "a" => Class::Atomic4,
                    _ => Class::Atomic8,
                };
                let pattern = match *lanes {
                    "row" => Pattern::Row { log: 0, shift: 0 },
                    "next" => Pattern::Row { log: 0, shift: 1 },
                    "all" => Pattern::Several,
                    lane => Pattern::One(lane.parse().unwrap()),
                };
                let (block, warp) = (block.parse().unwrap(), warp.parse().unwrap());
                let words = if matches!(pattern, Pattern::Row { .. }) { 0xff } else { 1 };
                out.push(Access { now: Now { block, interval, sub, warp, class, global }, words, pattern });
            }
            _ => panic!("{step}"),
        }
    }
    out
}

#[test]
fn what_is_clean_and_what_is_not() {
    for (text, global, expected) in [
        ("0.0 w 3, 0.0 r 3, 0.0 w 3", false, None),
        ("0.0 w 3, 0.0 r 4", false, Some(Doubt::Lanes)),
        ("0.0 w 3, -, 0.0 r all, -, 0.0 w 5", false, None),
        ("0.0 w 3, -, 0.0 r all, 0.1 r 0", false, Some(Doubt::Threads)),
        ("0.0 r all, 0.1 r all, 0.0 r 7", false, None),
        ("0.0 r all, 0.1 r all, 0.0 w 7", false, Some(Doubt::Threads)),
        ("0.0 r all, 0.0 w 7", false, Some(Doubt::Lanes)),
        ("0.0 r all, 0.1 r all, |, 0.0 w row, |, 0.1 r all", false, None),
        ("0.0 w row, 0.0 r row, 0.0 r next", false, Some(Doubt::Lanes)),
        ("0.0 w row, |, 0.0 r next, 0.1 r row", false, None),
        ("0.0 a 1, 0.1 a 2, |, 0.0 r all", false, None),
        ("0.0 a 1, 0.1 r 2", false, Some(Doubt::Threads)),
        ("0.0 a 1, 0.1 8 2", false, Some(Doubt::Threads)),
        ("0.0 w 1, 1.0 w 1", false, None),
        ("0.0 w 1, 1.0 r 1", true, Some(Doubt::Blocks)),
        ("0.0 r 1, 1.0 r 1, 2.3 r row", true, None),
        ("0.0 r 1, 1.0 r 1, |, 0.0 w 1", true, Some(Doubt::Blocks)),
        ("0.0 w 1, |, 0.1 r 1, |, 1.0 r 1", true, Some(Doubt::Blocks)),
        ("0.0 a 1, 1.0 a 1, 2.0 a 7", true, None),
        ("0.0 w 1, |, 0.0 a 1, 1.0 a 1", true, Some(Doubt::Blocks)),
        ("0.0 a 1, 1.0 a 1, |, 0.0 r 1", true, Some(Doubt::Blocks)),
        ("0.0 8 1, |, 0.0 a 1, 1.0 a 1", true, Some(Doubt::Blocks)),
        ("0.0 8 1, |, 0.0 8 1, 1.0 8 1", true, None),
        ("0.0 n 1, |, 0.0 w 1", true, Some(Doubt::Blocks)),
        ("0.0 w 1, |, 0.0 n 1", true, Some(Doubt::ReadOnly)),
        ("0.0 w 1, |, 0.0 r 1", true, None),
    ] {
        let accesses = accesses(text, global);
        let (words, line) = (by_words(&accesses), by_line(&accesses));
        assert_eq!(words.last(), Some(&expected.map_or(Ok(()), Err)), "{text}");
        assert!(words.iter().rev().skip(1).all(Result::is_ok), "{text}");
        assert_eq!(line, words, "{text}");
    }
}

fn access() -> impl Strategy<Value = Access> {
    let class = prop_oneof![
        8 => Just(Class::Read),
        5 => Just(Class::Write),
        1 => Just(Class::NonCoherent),
        2 => Just(Class::Atomic4),
        1 => Just(Class::Atomic8),
    ];
    let pattern = prop_oneof![
        (0u8..3).prop_map(Pattern::One),
        Just(Pattern::Several),
        (0i8..3, prop_oneof![Just(0u8), 0u8..32]).prop_map(|(log, shift)| Pattern::Row { log, shift }),
        Just(Pattern::Row { log: 0, shift: 0 }),
    ];
    let words = prop_oneof![Just(u32::MAX), Just(0xffff), Just(0xffff_0000), (0u32..32).prop_map(|n| 1 << n)];
    (0u32..3, 0u8..3, class, pattern, words, any::<bool>()).prop_map(
        |(block, warp, class, pattern, words, global)| {
            let class =
                if class == Class::Write && pattern == Pattern::Several { Class::Read } else { class };
            Access { now: Now { block, interval: 0, sub: 0, warp, class, global }, words, pattern }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// A line is never surer than its words, but where lanes share words: it knows of their bytes.
    #[test]
    fn a_line_doubts_where_a_word_does(
        mut accesses in proptest::collection::vec(access(), 1..12),
        steps in proptest::collection::vec((0u32..8, 0u32..5), 12),
        global: bool,
    ) {
        let (mut interval, mut sub) = (0, 0);
        for (access, (block, warp)) in accesses.iter_mut().zip(steps) {
            if block == 0 {
                (interval, sub) = (interval + 1, 0);
            } else if warp == 0 {
                sub += 1;
            }
            access.now = Now { interval, sub, global, ..access.now };
            if !global && access.now.class == Class::NonCoherent {
                access.now.class = Class::Read;
            }
        }
        // Blocks come one after the other in shared memory.
        if !global {
            accesses.sort_by_key(|access| access.now.block);
        }
        let (words, line) = (by_words(&accesses), by_line(&accesses));
        for (word, line) in words.iter().zip(&line) {
            prop_assert!(line.is_err() || word.is_ok(), "{words:?}\n{line:?}");
            if line.is_err() {
                break;
            }
        }
    }
}
