//! The text of a script, line by line.

use super::expression::{Expression, Function};
use super::{Instruction, Script};
use crate::protocol::{Statement, Type};
use crate::workload::{Datum, Expect};

/// Variables of all scripts together; each operation has values of its own.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: Vec<String>,
    /// `None`: read somewhere, and so far not set anywhere.
    values: Vec<Option<Datum>>,
}

impl Names {
    fn place(&mut self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.values.push(None);
            self.names.len() - 1
        })
    }

    pub(super) fn define(&mut self, name: &str, value: Datum) -> usize {
        let place = self.place(name);
        self.values[place] = Some(value);
        place
    }

    /// # Errors
    /// A variable that nothing sets.
    pub(super) fn values(self) -> Result<Vec<Datum>, String> {
        let both = self.names.iter().zip(self.values);
        both.map(|(name, value)| {
            value
                .ok_or_else(|| format!("nothing sets :{name}; give it with --define {name}=NUMBER"))
        })
        .collect()
    }
}

/// A `\if` that is open.
struct Open {
    /// Jump that leaves its current branch, if its condition is false.
    unless: Option<usize>,
    /// Jumps from the ends of branches to its end.
    to_end: Vec<usize>,
}

/// # Errors
/// What is wrong, and in which line.
pub(super) fn script(
    text: &str,
    names: &mut Names,
    statements: &mut Vec<Statement>,
) -> Result<Script, String> {
    let mut script = Script { instructions: Vec::new(), is_transaction: false };
    let mut open: Vec<Open> = Vec::new();
    let mut sql = Sql::default();
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
    for (number, line) in text.lines().enumerate() {
        let of = |reason: String| format!("line {}: {reason}", number + 1);
        match line.trim_start().strip_prefix('\\') {
            Some(meta) if sql.is_empty() => {
                command(meta.trim(), &mut script, &mut open, names).map_err(of)?;
            }
            Some(_) => return Err(of("a statement must end with ; before a command".to_owned())),
            None => sql.add(line, &mut script, names, statements).map_err(of)?,
        }
    }
    sql.end(&mut script, statements);
    if !open.is_empty() {
        return Err("a \\if has no \\endif".to_owned());
    }
    if !script.instructions.iter().any(|one| matches!(one, Instruction::Sql { .. })) {
        return Err("there is no statement".to_owned());
    }
    Ok(script)
}

fn command(
    meta: &str,
    script: &mut Script,
    open: &mut Vec<Open>,
    names: &mut Names,
) -> Result<(), String> {
    let (word, rest) = meta.split_once(char::is_whitespace).unwrap_or((meta, ""));
    let out = &mut script.instructions;
    let here = out.len();
    match word {
        "set" => {
            let (name, value) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest, ""));
            let value = expression(value, names)?;
            let variable = names.place(name);
            names.values[variable].get_or_insert(Datum::Null);
            out.push(Instruction::Set { variable, value });
        }
        "sleep" => {
            let mut words = rest.split_whitespace();
            let time = expression(words.next().unwrap_or_default(), names)?;
            let unit_ns = match words.next() {
                None | Some("s") => 1_000_000_000,
                Some("ms") => 1_000_000,
                Some("us") => 1_000,
                Some(_) => return Err("the unit of \\sleep is us, ms or s".to_owned()),
            };
            out.push(Instruction::Sleep { time, unit_ns });
        }
        "if" => {
            out.push(Instruction::Jump { unless: Some(expression(rest, names)?), to: 0 });
            open.push(Open { unless: Some(here), to_end: Vec::new() });
        }
        "elif" | "else" | "endif" => {
            let mut inner = open.pop().ok_or_else(|| format!("\\{word} without \\if"))?;
            if word != "endif" {
                let unless = inner.unless.take().ok_or("a branch follows \\else")?;
                out.push(Instruction::Jump { unless: None, to: 0 });
                inner.to_end.push(here);
                to(out, unless);
                if word == "elif" {
                    inner.unless = Some(out.len());
                    out.push(Instruction::Jump { unless: Some(expression(rest, names)?), to: 0 });
                }
                open.push(inner);
                return Ok(());
            }
            inner.unless.into_iter().chain(inner.to_end).for_each(|jump| to(out, jump));
        }
        _ => {
            return Err(format!(
                "tare-load has \\set, \\sleep, \\if, \\elif, \\else and \\endif, and no \\{word}"
            ));
        }
    }
    Ok(())
}

/// Lets a jump lead to the next line.
fn to(out: &mut [Instruction], jump: usize) {
    let next = out.len();
    if let Instruction::Jump { to, .. } = &mut out[jump] {
        *to = next;
    }
}

/// A statement that is being read.
#[derive(Default)]
struct Sql {
    text: String,
    variables: Vec<usize>,
    quote: Option<char>,
}

impl Sql {
    fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    fn add(
        &mut self,
        line: &str,
        script: &mut Script,
        names: &mut Names,
        statements: &mut Vec<Statement>,
    ) -> Result<(), String> {
        let mut rest = line;
        while let Some(letter) = rest.chars().next() {
            let after = &rest[letter.len_utf8()..];
            let length = after.find(|next: char| !is_of_name(next)).unwrap_or(after.len());
            match (self.quote, letter) {
                (Some(quote), _) if quote == letter => self.quote = None,
                (None, '\'' | '"') => self.quote = Some(letter),
                (None, '-') if after.starts_with('-') => break,
                (None, '\\') => return Err("statements are not combined by \\;".to_owned()),
                (None, ';') => {
                    self.end(script, statements);
                    rest = after;
                    continue;
                }
                (None, ':') if after.starts_with(':') => {
                    self.text.push_str("::");
                    rest = &after[1..];
                    continue;
                }
                (None, ':')
                    if length > 0 && !after.starts_with(|one: char| one.is_ascii_digit()) =>
                {
                    self.text.push('?');
                    self.variables.push(names.place(&after[..length]));
                    rest = &after[length..];
                    continue;
                }
                _ => {}
            }
            self.text.push(letter);
            rest = after;
        }
        if !self.is_empty() {
            self.text.push('\n');
        }
        Ok(())
    }

    fn end(&mut self, script: &mut Script, statements: &mut Vec<Statement>) {
        let Self { text, variables, .. } = std::mem::take(self);
        let text = text.trim().to_owned();
        if text.is_empty() {
            return;
        }
        let verb = text.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        script.is_transaction |= ["BEGIN", "START"].contains(&verb.as_str());
        let parameters = vec![Type::Integer; variables.len()];
        let expect = Expect { may_miss: true, ..Expect::default() };
        let statement = statements.len();
        statements.push(Statement { text, parameters, ..Statement::default() });
        script.instructions.push(Instruction::Sql { statement, variables, expect });
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// # Errors
/// What is wrong.
pub(super) fn expression(text: &str, names: &mut Names) -> Result<Expression, String> {
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: &tokens, names };
    let expression = reader.level(0)?;
    match reader.tokens.first() {
        None => Ok(expression),
        Some(token) => Err(format!("`{token}` is not expected in `{}`", text.trim())),
    }
}

fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim();
    while let Some(letter) = rest.chars().next() {
        let named = rest.strip_prefix(':').filter(|after| after.starts_with(is_of_name));
        let length = if let Some(after) = named {
            1 + after.find(|next| !is_of_name(next)).unwrap_or(after.len())
        } else if is_of_name(letter) || letter == '.' {
            rest.find(|next| !is_of_name(next) && next != '.').unwrap_or(rest.len())
        } else if ["<>", "!=", "<=", ">="].iter().any(|two| rest.starts_with(two)) {
            2
        } else if "+-*/%=<>(),".contains(letter) {
            1
        } else {
            return Err(format!("`{letter}` is not known in an expression"));
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// Operators, those that bind least first.
const LEVELS: [&[(&str, Function)]; 5] = [
    &[("or", Function::Or)],
    &[("and", Function::And)],
    &[
        ("=", Function::Equal),
        ("<>", Function::Differ),
        ("!=", Function::Differ),
        ("<", Function::Less),
        ("<=", Function::LessOrEqual),
        (">", Function::Less),
        (">=", Function::LessOrEqual),
    ],
    &[("+", Function::Add), ("-", Function::Subtract)],
    &[("*", Function::Multiply), ("/", Function::Divide), ("%", Function::Modulo)],
];
/// Level of comparisons, before which `not` binds.
const COMPARISON: usize = 2;

struct Reader<'a> {
    tokens: &'a [String],
    names: &'a mut Names,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.clone())
    }

    fn takes(&mut self, token: &str) -> bool {
        let is = self.tokens.first().is_some_and(|first| first.eq_ignore_ascii_case(token));
        if is {
            self.tokens = &self.tokens[1..];
        }
        is
    }

    fn level(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operators) = LEVELS.get(level) else { return self.single() };
        if level == COMPARISON && self.takes("not") {
            return Ok(Expression::Call(Function::Not, vec![self.level(level)?]));
        }
        let mut left = self.level(level + 1)?;
        'next: loop {
            for (token, function) in *operators {
                if self.takes(token) {
                    let right = self.level(level + 1)?;
                    let both =
                        if token.starts_with('>') { vec![right, left] } else { vec![left, right] };
                    left = Expression::Call(*function, both);
                    continue 'next;
                }
            }
            return Ok(left);
        }
    }

    fn single(&mut self) -> Result<Expression, String> {
        let Some(token) = self.next() else { return Err("an expression is cut short".to_owned()) };
        let lower = token.to_ascii_lowercase();
        Ok(match lower.as_str() {
            "-" => {
                let zero = Expression::Value(Datum::Integer(0));
                Expression::Call(Function::Subtract, vec![zero, self.single()?])
            }
            "+" => self.single()?,
            "(" => {
                let inner = self.level(0)?;
                if !self.takes(")") {
                    return Err("a ( has no )".to_owned());
                }
                inner
            }
            "true" => Expression::Value(Datum::Integer(1)),
            "false" => Expression::Value(Datum::Integer(0)),
            "null" => Expression::Value(Datum::Null),
            name if name.starts_with(':') => Expression::Variable(self.names.place(&token[1..])),
            name if name.starts_with(|one: char| one.is_ascii_digit() || one == '.') => {
                let whole = name.parse().map(Datum::Integer);
                let value = whole.or_else(|_| name.parse().map(Datum::Double));
                Expression::Value(value.map_err(|_| format!("`{token}` is no number"))?)
            }
            name => self.call(name)?,
        })
    }

    fn call(&mut self, name: &str) -> Result<Expression, String> {
        let known = Function::named(name).filter(|_| self.takes("("));
        let (function, least, most) =
            known.ok_or_else(|| format!("tare-load has no function `{name}` of pgbench"))?;
        let mut values = vec![self.level(0)?];
        while self.takes(",") {
            values.push(self.level(0)?);
        }
        if !self.takes(")") || !(least..=most).contains(&values.len()) {
            return Err(format!("{name}() does not take {} values", values.len()));
        }
        Ok(Expression::Call(function, values))
    }
}
