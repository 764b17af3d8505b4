//! YCSB's property files, read as `java.util.Properties` reads them, and `-p NAME=VALUE`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::LoadError;

/// Where a property was set, for error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    File { path: PathBuf, line: usize },
    CommandLine,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Property {
    pub(super) value: String,
    place: Place,
}

impl Property {
    /// Makes the error for a property that is wrong or not supported.
    pub(super) fn refused(&self, name: &str, reason: &str) -> LoadError {
        match &self.place {
            Place::File { path, line } => LoadError::Line {
                path: path.clone(),
                line: *line,
                reason: format!("{name}: {reason}"),
            },
            Place::CommandLine => LoadError::Usage(format!("-p {name}={}: {reason}", self.value)),
        }
    }
}

/// Properties with their last values. Those that are understood are taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    by_name: BTreeMap<String, Property>,
}

impl Properties {
    /// Reads the files in order; `-p` overrides them, wherever it is on the command line.
    ///
    /// # Errors
    /// A file cannot be read, or something is not a property.
    pub fn read(files: &[PathBuf], single: &[String]) -> Result<Self, LoadError> {
        let mut properties = Self::default();
        for path in files {
            // Java reads them as ISO 8859-1: each byte is a character.
            let bytes = std::fs::read(path)
                .map_err(|source| LoadError::File { path: path.clone(), source })?;
            let text: String = bytes.iter().copied().map(char::from).collect();
            properties.add_file(path, &text)?;
        }
        for argument in single {
            let (name, value) = argument.split_once('=').ok_or_else(|| {
                LoadError::Usage(format!("-p {argument}: a property is written NAME=VALUE"))
            })?;
            let property = Property { value: value.trim().to_owned(), place: Place::CommandLine };
            properties.by_name.insert(name.trim().to_owned(), property);
        }
        Ok(properties)
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Property> {
        self.by_name.remove(name)
    }

    /// Properties that were not taken.
    pub(super) fn rest(&self) -> impl Iterator<Item = (&String, &Property)> {
        self.by_name.iter()
    }

    fn add_file(&mut self, path: &Path, text: &str) -> Result<(), LoadError> {
        for Logical { line, text } in logical_lines(text) {
            let wrong = |reason| LoadError::Line {
                path: path.to_owned(),
                line,
                reason: String::from(reason),
            };
            let (name, value) = divided(&text);
            let name = unescaped(name).map_err(wrong)?;
            let value = unescaped(value).map_err(wrong)?.trim_end().to_owned();
            let place = Place::File { path: path.to_owned(), line };
            self.by_name.insert(name, Property { value, place });
        }
        Ok(())
    }
}

/// A line with its continuation lines.
struct Logical {
    /// Number of the first of them.
    line: usize,
    text: String,
}

fn logical_lines(text: &str) -> Vec<Logical> {
    let mut found: Vec<Logical> = Vec::new();
    let mut continues = false;
    for (number, raw) in (1..).zip(text.split(['\n', '\r'])) {
        let part = raw.trim_start_matches([' ', '\t', '\x0c']);
        if !continues && (part.is_empty() || part.starts_with(['#', '!'])) {
            continue;
        }
        let escaping = part.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1;
        let part = if escaping { &part[..part.len() - 1] } else { part };
        match found.last_mut() {
            Some(last) if continues => last.text.push_str(part),
            _ => found.push(Logical { line: number, text: part.to_owned() }),
        }
        continues = escaping;
    }
    found
}

/// Name and value, still escaped, separated by `=`, `:` or whitespace.
fn divided(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line
        .find(|letter: char| {
            let ends = !escaped && matches!(letter, '=' | ':' | ' ' | '\t' | '\x0c');
            escaped = letter == '\\' && !escaped;
            ends
        })
        .unwrap_or(line.len());
    let blank = [' ', '\t', '\x0c'];
    let value = line[end..].trim_start_matches(blank);
    let value = value.strip_prefix(['=', ':']).unwrap_or(value);
    (&line[..end], value.trim_start_matches(blank))
}

fn unescaped(text: &str) -> Result<String, &'static str> {
    const CODE: &str = "\\u stands before four hexadecimal digits";
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\x0c'),
            Some('u') => {
                let digits: String = letters.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                out.push(code.and_then(char::from_u32).ok_or(CODE)?);
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String, usize)> {
        let mut properties = Properties::default();
        properties.add_file(Path::new("f"), text).expect("a property file");
        let line = |property: &Property| match property.place {
            Place::File { line, .. } => line,
            Place::CommandLine => 0,
        };
        let one = |(name, property): (&String, &Property)| {
            (name.clone(), property.value.clone(), line(property))
        };
        properties.rest().map(one).collect()
    }

    fn owned(found: &[(&str, &str, usize)]) -> Vec<(String, String, usize)> {
        found.iter().map(|&(name, value, line)| (name.into(), value.into(), line)).collect()
    }

    #[test]
    fn a_file_is_read_as_java_reads_it() {
        let text = "# a comment \\\n ! another\n\na=1\n b : two words \nc\\=d e\nlong = one,\\\n   two\n\
                    empty\nu=\\u0041\\tx\na=2\n";
        assert_eq!(
            read(text),
            owned(&[
                ("a", "2", 11),
                ("b", "two words", 5),
                ("c=d", "e", 6),
                ("empty", "", 9),
                ("long", "one,two", 7),
                ("u", "A\tx", 10),
            ])
        );
    }

    #[test]
    fn a_single_property_comes_before_files() {
        let single = ["recordcount=5".to_owned(), "recordcount = 7".to_owned()];
        let mut properties = Properties::read(&[], &single).expect("properties");
        let property = properties.take("recordcount").expect("the property");
        assert_eq!(property.value, "7");
        let refused = property.refused("recordcount", "no").to_string();
        assert_eq!(refused, "-p recordcount=7: no");
        assert!(properties.take("recordcount").is_none());
        assert!(Properties::read(&[], &["recordcount".to_owned()]).is_err());
    }
}
