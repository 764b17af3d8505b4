//! Values in exports, counted or computed, as CSV and as JSON.

use tare_record::parquet::read::Value;

/// An exported value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shown {
    Missing,
    Integer(i64),
    Real(f64),
    Text(String),
}

impl From<&Value> for Shown {
    fn from(value: &Value) -> Self {
        match value {
            Value::Missing => Self::Missing,
            Value::Number(number) => Self::Integer(*number),
            Value::Text(text) => Self::Text(text.clone()),
        }
    }
}

/// A missing value is an empty cell; text is quoted where it must be (RFC 4180).
pub(crate) fn csv(value: &Shown) -> String {
    match value {
        Shown::Missing => String::new(),
        Shown::Integer(number) => number.to_string(),
        Shown::Real(number) => number.to_string(),
        Shown::Text(text) if text.contains(['"', ',', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Shown::Text(text) => text.clone(),
    }
}

/// Numbers stay numbers; a missing value is `null`.
pub(crate) fn json(value: &Shown) -> String {
    match value {
        Shown::Missing => "null".to_owned(),
        Shown::Integer(number) => number.to_string(),
        Shown::Real(number) => number.to_string(),
        Shown::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_is_empty_in_csv_and_null_in_json() {
        assert_eq!(csv(&Shown::Missing), "");
        assert_eq!(json(&Shown::Missing), "null");
        assert_eq!(csv(&Shown::Integer(0)), "0");
    }

    #[test]
    fn words_cannot_break_a_line() {
        assert_eq!(csv(&Shown::Text("a,\"b\"".to_owned())), "\"a,\"\"b\"\"\"");
        assert_eq!(json(&Shown::Text("a\"\n".to_owned())), "\"a\\\"\\n\"");
    }
}
