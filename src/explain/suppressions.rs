//! Files of suppressions: lines `rule:pattern # reason`.

use glob::{MatchOptions, Pattern};

use super::names::demangle;
use super::{Explained, rules};
use crate::diag::Diagnostic;
use crate::finding::Rule;
use crate::span::{SourceFile, Span};

/// One line of such a file.
#[derive(Clone, Debug)]
pub struct Suppression {
    /// Rule and pattern as they stand there.
    pub text: String,
    /// The reason given.
    pub reason: Option<String>,
    /// The file.
    pub file: SourceFile,
    /// Where in it.
    pub span: Span,
    rule: Option<Rule>,
    pattern: Pattern,
}

/// Reads all lines, or says what is wrong with each that is.
pub fn suppressions(file: &SourceFile) -> Result<Vec<Suppression>, Vec<Diagnostic>> {
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    let mut start = 0;
    for line in file.text().split_inclusive('\n') {
        let text = line.trim();
        if !text.is_empty() && !text.starts_with('#') {
            let at = start + (line.len() - line.trim_start().len());
            match suppression(file, text, at) {
                Ok(suppression) => all.push(suppression),
                Err(error) => errors.push(*error),
            }
        }
        start += line.len();
    }
    if errors.is_empty() { Ok(all) } else { Err(errors) }
}

fn suppression(file: &SourceFile, line: &str, at: usize) -> Result<Suppression, Box<Diagnostic>> {
    // A `#` inside of a pattern has no blank before it.
    let comment =
        line.char_indices().zip(line.chars().skip(1)).find(|((_, a), b)| a.is_whitespace() && *b == '#');
    let (text, reason) = match comment {
        Some(((end, _), _)) => {
            (line[..end].trim_end(), line[end..].trim_start().trim_start_matches('#').trim())
        }
        None => (line, ""),
    };
    let span = Span::new(at, at + text.len());
    let wrong =
        |message: String, span: Span, label: &str| Box::new(Diagnostic::error(message).at(file, span, label));
    let Some((id, pattern)) = text.split_once(':') else {
        let error = wrong(format!("`{text}` is no suppression"), span, "expected `rule:pattern`");
        return Err(Box::new(error.help("write such as `R010:histogram*  # only a hint`; `*` is any rule")));
    };
    let (id, pattern) = (id.trim(), pattern.trim());
    let rule = match id {
        "*" => None,
        id => Some(rules::by_id(id).ok_or_else(|| {
            let ids: Vec<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
            let error = wrong(format!("there is no rule `{id}`"), Span::new(at, at + id.len()), "here");
            Box::new(error.help(format!("the rules are {}, and `*` for any", ids.join(" "))))
        })?),
    };
    if pattern.is_empty() {
        return Err(wrong("this suppression has no pattern".into(), span, "expected `rule:pattern`"));
    }
    let pattern = Pattern::new(pattern)
        .map_err(|error| wrong(format!("`{pattern}` is no glob pattern: {}", error.msg), span, "here"))?;
    let reason = (!reason.is_empty()).then(|| reason.to_owned());
    Ok(Suppression { text: text.to_owned(), reason, file: file.clone(), span, rule, pattern })
}

impl Suppression {
    /// Whether it is about a finding: the pattern fits a kernel, a source file or the variable.
    pub(super) fn fits(&self, finding: &Explained) -> bool {
        self.rule.is_none_or(|rule| rule == finding.rule)
            && (finding.object.iter().any(|object| {
                self.name(&object.name) || object.full.as_deref().is_some_and(|full| self.name(full))
            }) || finding.accesses.iter().any(|access| {
                let kernel = demangle(&access.kernel);
                let files = access.source.iter().chain([&access.place, &access.ptx]).map(|frame| &frame.file);
                self.name(&access.kernel)
                    || self.name(&kernel.short)
                    || self.name(&kernel.full)
                    || files.into_iter().any(|file| self.path(file))
            }))
    }

    fn name(&self, name: &str) -> bool {
        self.pattern.matches(name)
    }

    /// A path fits as a whole, or what is behind any of its folders does.
    fn path(&self, path: &str) -> bool {
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        let tails = path.match_indices(['/', '\\']).map(|(at, _)| at + 1);
        std::iter::once(0)
            .chain(tails)
            .any(|start| path.get(start..).is_some_and(|tail| self.pattern.matches_with(tail, options)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Suppression>, Vec<Diagnostic>> {
        suppressions(&SourceFile::new("s.txt", text).unwrap())
    }

    #[test]
    fn lines_have_rule_pattern_and_reason() {
        let all =
            read("# comment\n\n  R010:found # a hint: true # yes\n*:lib/**/x#y.cu\r\nr001:a*\n").unwrap();
        let texts: Vec<_> = all.iter().map(|s| (s.text.as_str(), s.reason.as_deref(), s.rule)).collect();
        let expected = [
            ("R010:found", Some("a hint: true # yes"), Some(Rule::R010)),
            ("*:lib/**/x#y.cu", None, None),
            ("r001:a*", None, Some(Rule::R001)),
        ];
        assert_eq!(texts, expected);
        assert_eq!(all[0].file.line_col(all[0].span.start).line, 3);
    }

    #[test]
    fn every_bad_line_is_an_error() {
        let errors = read("R010\nR999:x\nR001: # why\nR001:[a\nR001:ok\n").unwrap_err();
        let lines: Vec<_> = errors.iter().map(|e| e.labels[0].place.position().1.line).collect();
        assert_eq!(lines, [1, 2, 3, 4]);
    }

    #[test]
    fn paths_fit_from_any_folder_on() {
        let fits = |pattern: &str, path: &str| read(&format!("*:{pattern}")).unwrap()[0].path(path);
        assert!(fits("a.cu", "/src/lib/a.cu"));
        assert!(fits("lib/*.cu", "/src/lib/a.cu"));
        assert!(fits("src/**/*.cu", "/src/lib/deep/a.cu"));
        assert!(!fits("src/*.cu", "/src/lib/a.cu"));
        assert!(!fits("b.cu", "/src/lib/ab.cu"));
    }
}
