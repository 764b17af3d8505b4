//! Types of BSON that JSON lacks, written as in `MongoDB`'s Extended JSON (version 2), such as `{"$oid": "…"}`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::json::Json;
use crate::protocol::statement::days;

/// The number of a type, and the bytes of a value.
pub(super) type Typed = (u8, Vec<u8>);

/// How a value of a request goes into BSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By what it is: a string or 64 bits.
    Own,
    Binary,
    /// 32 bits.
    Short,
    Double,
    /// Milliseconds since 1970.
    Date,
    /// 24 hexadecimal digits, or a number in the last 8 of its 12 bytes.
    ObjectId,
}

pub(super) const DOUBLE: u8 = 0x01;
pub(super) const STRING: u8 = 0x02;
pub(super) const DOCUMENT: u8 = 0x03;
pub(super) const ARRAY: u8 = 0x04;
pub(super) const BINARY: u8 = 0x05;
pub(super) const OBJECT_ID: u8 = 0x07;
pub(super) const BOOLEAN: u8 = 0x08;
pub(super) const DATE: u8 = 0x09;
pub(super) const NULL: u8 = 0x0a;
const EXPRESSION: u8 = 0x0b;
const CODE: u8 = 0x0d;
pub(super) const INT32: u8 = 0x10;
const TIMESTAMP: u8 = 0x11;
pub(super) const INT64: u8 = 0x12;
const DECIMAL: u8 = 0x13;
const LEAST: u8 = 0xff;
const GREATEST: u8 = 0x7f;
/// Subtype of a UUID.
const UUID: u8 = 4;

/// How the value behind this name is written, where a request gives it; `None`: by no type of its own.
pub(super) fn form(name: &str) -> Result<Option<Form>, &'static str> {
    Ok(Some(match name {
        "$binary" => Form::Binary,
        "$numberInt" => Form::Short,
        "$numberLong" => Form::Own,
        "$numberDouble" => Form::Double,
        "$date" => Form::Date,
        "$oid" => Form::ObjectId,
        "$numberDecimal" | "$uuid" | "$timestamp" | "$regularExpression" | "$code" => {
            return Err("a generator in a type that has no generators");
        }
        _ => return Ok(None),
    }))
}

/// A value of a type that JSON lacks; `None`: it is an ordinary document, such as with `$set` or `$gte`.
pub(super) fn typed(value: &Json) -> Result<Option<Typed>, &'static str> {
    let Json::Document(members) = value else { return Ok(None) };
    let [(name, value)] = members.as_slice() else { return Ok(None) };
    let found = match name.as_str() {
        "$oid" => object_id(value.text().unwrap_or_default().as_bytes())
            .map(|bytes| (OBJECT_ID, bytes.to_vec())),
        "$date" => date(value).map(|number| (DATE, number.to_le_bytes().to_vec())),
        "$numberInt" => number::<i32>(value).map(|number| (INT32, number.to_le_bytes().to_vec())),
        "$numberLong" => number::<i64>(value).map(|number| (INT64, number.to_le_bytes().to_vec())),
        "$numberDouble" => {
            number::<f64>(value).map(|number| (DOUBLE, number.to_le_bytes().to_vec()))
        }
        "$numberDecimal" => {
            value.text().and_then(decimal).map(|bits| (DECIMAL, bits.to_le_bytes().to_vec()))
        }
        "$binary" => binary(value),
        "$uuid" => uuid(value),
        "$timestamp" => timestamp(value),
        "$regularExpression" => expression(value),
        "$code" => value.text().map(|text| {
            let mut bytes = Vec::new();
            string(text.as_bytes(), &mut bytes);
            (CODE, bytes)
        }),
        "$minKey" => Some((LEAST, Vec::new())),
        "$maxKey" => Some((GREATEST, Vec::new())),
        "$symbol" | "$undefined" | "$dbPointer" => {
            return Err("a type that MongoDB has given up");
        }
        _ => return Ok(None),
    };
    found.map(Some).ok_or("a type of Extended JSON without a value that it can have")
}

pub(super) fn string(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as i32 + 1).to_le_bytes());
    out.extend_from_slice(text);
    out.push(0);
}

pub(super) fn put_binary(kind: u8, content: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(content.len() as i32).to_le_bytes());
    out.push(kind);
    out.extend_from_slice(content);
}

/// Of 24 hexadecimal digits.
pub(super) fn object_id(digits: &[u8]) -> Option<[u8; 12]> {
    let mut bytes = [0; 12];
    for (place, &digit) in <&[u8; 24]>::try_from(digits).ok()?.iter().enumerate() {
        bytes[place / 2] = bytes[place / 2] << 4 | char::from(digit).to_digit(16)? as u8;
    }
    Some(bytes)
}

/// As text, by Extended JSON; `Infinity` and `NaN` too.
fn number<T: std::str::FromStr>(value: &Json) -> Option<T> {
    value.text()?.parse().ok()
}

/// Milliseconds: of `2026-11-30T12:00:00.250Z`, or as a number.
fn date(value: &Json) -> Option<i64> {
    match value {
        Json::Whole(number) => Some(*number),
        Json::Text(text) => time(text),
        _ => value.only("$numberLong").and_then(number),
    }
}

/// RFC 3339.
fn time(text: &str) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let (time, zone) = rest.strip_prefix('T')?.split_at_checked(8)?;
    let mut parts = time.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let start = zone.find(['Z', '+', '-'])?;
    let (fraction, zone) = zone.split_at(start);
    let thousandths = match fraction.strip_prefix('.') {
        Some(digits) => format!("{digits:0<3}").get(..3)?.parse().ok()?,
        None if fraction.is_empty() => 0,
        None => return None,
    };
    let east = match zone.split_at(1) {
        ("Z", "") => 0,
        (sign, offset) => {
            let (hours, minutes) = offset.split_once(':')?;
            let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..=60).contains(&second) {
        return None;
    }
    let minutes = (days(day)? * 24 + hour) * 60 + minute - east;
    Some((minutes * 60 + second) * 1000 + thousandths)
}

/// IEEE 754-2008 decimal128 with its digits as one binary number.
fn decimal(text: &str) -> Option<u128> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (1_u128 << 127, rest),
        None => (0, text.strip_prefix('+').unwrap_or(text)),
    };
    match text.to_ascii_lowercase().as_str() {
        "infinity" | "inf" => return Some(sign | 0x78 << 120),
        "nan" => return Some(0x7c << 120),
        _ => {}
    }
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = [whole, part].concat();
    let significant = digits.trim_start_matches('0');
    let exponent = exponent.checked_sub(i32::try_from(part.len()).ok()?)?;
    if digits.is_empty() || significant.len() > 34 || !(-6176..=6111).contains(&exponent) {
        return None;
    }
    let digits = if significant.is_empty() { "0" } else { significant };
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse())?.ok()?;
    let number: u128 = number;
    Some(sign | u128::from((exponent + 6176) as u16) << 113 | number)
}

fn member<'a>(value: &'a Json, name: &str) -> Option<&'a Json> {
    let Json::Document(members) = value else { return None };
    members.iter().find(|(found, _)| found == name).map(|(_, value)| value)
}

fn binary(value: &Json) -> Option<Typed> {
    let content = STANDARD.decode(member(value, "base64")?.text()?).ok()?;
    let kind = u8::from_str_radix(member(value, "subType")?.text()?, 16).ok()?;
    let mut bytes = Vec::new();
    put_binary(kind, &content, &mut bytes);
    Some((BINARY, bytes))
}

fn uuid(value: &Json) -> Option<Typed> {
    let digits = value.text()?.replace('-', "");
    let content = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
    let mut bytes = Vec::new();
    put_binary(UUID, &content.to_be_bytes(), &mut bytes);
    Some((BINARY, bytes))
}

fn timestamp(value: &Json) -> Option<Typed> {
    let part = |name| match member(value, name) {
        Some(Json::Whole(number)) => u32::try_from(*number).ok(),
        _ => None,
    };
    Some((TIMESTAMP, [part("i")?.to_le_bytes(), part("t")?.to_le_bytes()].concat()))
}

fn expression(value: &Json) -> Option<Typed> {
    let part = |name| member(value, name)?.text().filter(|text| !text.contains('\0'));
    Some((EXPRESSION, [part("pattern")?, "\0", part("options")?, "\0"].concat().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Option<Typed> {
        typed(&serde_json::from_str(text).expect("JSON")).ok().flatten()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02X}"))
    }

    /// Of the corpus of `MongoDB`'s specification of BSON (`bson-corpus/tests`): the value without type, name and frame.
    #[test]
    fn the_specifications_examples() {
        let cases = [
            (r#"{"$oid": "56e1fc72e0c917e9c4714161"}"#, 0x07, "56E1FC72E0C917E9C4714161"),
            (r#"{"$date": "1970-01-01T00:00:00Z"}"#, 0x09, "0000000000000000"),
            (r#"{"$date": "2012-12-24T12:15:30.501Z"}"#, 0x09, "C5D8D6CC3B010000"),
            (r#"{"$date": {"$numberLong": "-284643869501"}}"#, 0x09, "C33CE7B9BDFFFFFF"),
            (r#"{"$numberInt": "-2147483648"}"#, 0x10, "00000080"),
            (r#"{"$numberLong": "9223372036854775807"}"#, 0x12, "FFFFFFFFFFFFFF7F"),
            (r#"{"$numberDouble": "-0.0"}"#, 0x01, "0000000000000080"),
            (r#"{"$numberDouble": "Infinity"}"#, 0x01, "000000000000F07F"),
            (r#"{"$numberDecimal": "0.1"}"#, 0x13, "01000000000000000000000000003E30"),
            (r#"{"$numberDecimal": "-1E+3"}"#, 0x13, "010000000000000000000000000046B0"),
            (r#"{"$numberDecimal": "Infinity"}"#, 0x13, "00000000000000000000000000000078"),
            (
                r#"{"$numberDecimal": "0.1234567890123456789012345678901234"}"#,
                0x13,
                "F2AF967ED05C82DE3297FF6FDE3CFC2F",
            ),
            (r#"{"$binary": {"base64": "//8=", "subType": "00"}}"#, 0x05, "0200000000FFFF"),
            (
                r#"{"$uuid": "73ffd264-44b3-4c69-90e8-e7d1dfc035d4"}"#,
                0x05,
                "100000000473FFD26444B34C6990E8E7D1DFC035D4",
            ),
            (r#"{"$timestamp": {"t": 123456789, "i": 42}}"#, 0x11, "2A00000015CD5B07"),
            (
                r#"{"$regularExpression": {"pattern": "abc", "options": "im"}}"#,
                0x0b,
                "61626300696D00",
            ),
            (r#"{"$code": "abababababab"}"#, 0x0d, "0D0000006162616261626162616261 6200"),
            (r#"{"$minKey": 1}"#, 0xff, ""),
            (r#"{"$maxKey": 1}"#, 0x7f, ""),
        ];
        for (text, kind, value) in cases {
            let (found, bytes) = bytes(text).expect(text);
            assert_eq!((found, hex(&bytes)), (kind, value.replace(' ', "")), "{text}");
        }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("2000-02-29T00:00:00Z", 951_782_400),
            ("1969-12-31T23:59:59Z", -1),
            ("2026-03-01T01:30:00+01:30", 1_772_323_200),
            ("2026-02-28T22:30:00-01:30", 1_772_323_200),
        ] {
            assert_eq!(time(text), Some(seconds * 1000), "{text}");
        }
        for text in ["", "2026-13-01T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "x"] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn operators_are_documents_and_wrong_values_are_refused() {
        let typed = |text: &str| typed(&serde_json::from_str(text).expect("JSON"));
        for text in [r#"{"$set": {"a": 1}}"#, r#"{"$gte": 1}"#, "{}", "[]", "1"] {
            assert_eq!(typed(text), Ok(None), "{text}");
        }
        for text in [
            r#"{"$oid": "56e1fc72e0c917e9c471416"}"#,
            r#"{"$oid": 1}"#,
            r#"{"$date": "today"}"#,
            r#"{"$numberInt": "2147483648"}"#,
            r#"{"$numberDecimal": "1.2.3"}"#,
            r#"{"$numberDecimal": "+-1"}"#,
            r#"{"$binary": {"base64": "?", "subType": "00"}}"#,
            r#"{"$uuid": "73ffd264"}"#,
            r#"{"$timestamp": {"t": -1, "i": 1}}"#,
            r#"{"$symbol": "a"}"#,
        ] {
            assert!(typed(text).is_err(), "{text}");
        }
    }
}
