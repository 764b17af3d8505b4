//! Statements with gaps for values.

use super::source::Source;
use crate::protocol::statement::json_parts;
use crate::protocol::{Statement, Type};

/// Syntax of a statement's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Words between spaces; generators may be parts of a word.
    Words,
    /// SQL or CQL: a generator is a whole parameter.
    Sql,
    /// JSON: a generator is a value, or part of a string.
    Json,
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

/// Parses each `{name}` in a text.
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
                        statement.parameters.push(type_of(&sources[source]));
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
        Dialect::Json => {
            let parts = json_parts(text)
                .ok_or_else(|| format!("`{text}`: a quotation mark is opened and not closed"))?;
            for (place, part) in parts.into_iter().enumerate() {
                if place % 2 == 0 {
                    values(part, names, sources, &mut statement, &mut parameters);
                    continue;
                }
                let plain: String = serde_json::from_str(part)
                    .map_err(|error| format!("{part} is no string of JSON: {error}"))?;
                let pieces = pieces(&plain, names)?;
                if pieces.iter().any(|piece| matches!(piece, Piece::Source(_))) {
                    statement.text.push('?');
                    statement.parameters.push(Type::Text);
                    parameters.push(Parameter::Pieces(pieces));
                } else {
                    statement.text.push_str(part);
                }
            }
        }
    }
    Ok((statement, parameters))
}

/// Parses each `{name}` in JSON outside of strings; other braces belong to the JSON.
fn values(
    text: &str,
    names: &[&String],
    sources: &[Source],
    statement: &mut Statement,
    parameters: &mut Vec<Parameter>,
) {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        statement.text.push_str(before);
        let name = after.split_once('}').map(|(name, _)| name);
        if let Some(source) = name.and_then(|name| names.iter().position(|known| *known == name)) {
            statement.text.push('?');
            statement.parameters.push(type_of(&sources[source]));
            parameters.push(Parameter::Whole(source));
            rest = &after[names[source].len() + 1..];
        } else {
            statement.text.push('{');
            rest = after;
        }
    }
    statement.text.push_str(rest);
}

fn type_of(source: &Source) -> Type {
    match source {
        Source::Number { .. } | Source::Sequential { .. } => Type::Integer,
        Source::Text { .. } | Source::Choice(_) | Source::Kept(_) => Type::Text,
    }
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
