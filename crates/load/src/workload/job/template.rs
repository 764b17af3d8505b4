//! Statements with gaps for values.

use super::source::Source;
use crate::protocol::{Statement, Type};

/// How a statement's text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Words between blanks; generators may be parts of a word.
    Words,
    /// SQL or CQL: a generator is a whole parameter.
    Sql,
}

pub(super) enum Parameter {
    Whole(usize),
    /// A word made of several pieces.
    Pieces(Vec<Piece>),
}

pub(super) enum Piece {
    Literal(Vec<u8>),
    Source(usize),
}

/// Takes `{name}` out of a text.
pub(super) fn template(
    text: &str,
    dialect: Dialect,
    names: &[&String],
    sources: &[Source],
) -> Result<(Statement, Vec<Parameter>), String> {
    let mut statement = Statement::default();
    let mut parameters = Vec::new();
    match dialect {
        Dialect::Sql => {
            for piece in pieces(text, names)? {
                match piece {
                    Piece::Literal(literal) => {
                        statement.text.push_str(&String::from_utf8_lossy(&literal));
                    }
                    Piece::Source(source) => {
                        statement.text.push('?');
                        statement.parameters.push(match sources[source] {
                            Source::Number { .. } | Source::Sequential { .. } => Type::Integer,
                            Source::Text { .. } | Source::Choice(_) => Type::Text,
                        });
                        parameters.push(Parameter::Whole(source));
                    }
                }
            }
        }
        Dialect::Words => {
            for word in text.split_ascii_whitespace() {
                if !statement.text.is_empty() {
                    statement.text.push(' ');
                }
                let pieces = pieces(word, names)?;
                if !pieces.iter().any(|piece| matches!(piece, Piece::Source(_))) {
                    statement.text.push_str(word);
                    continue;
                }
                statement.text.push('?');
                statement.parameters.push(Type::Text);
                parameters.push(Parameter::Pieces(pieces));
            }
        }
    }
    Ok((statement, parameters))
}

fn pieces(text: &str, names: &[&String]) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after
            .split_once('}')
            .ok_or_else(|| format!("`{text}`: a brace is opened and not closed"))?;
        let source = names.iter().position(|known| *known == name).ok_or_else(|| {
            format!("`{text}`: there is no generator `{name}`; add it under `generators`")
        })?;
        if !before.is_empty() {
            pieces.push(Piece::Literal(before.as_bytes().to_vec()));
        }
        pieces.push(Piece::Source(source));
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.as_bytes().to_vec()));
    }
    Ok(pieces)
}
