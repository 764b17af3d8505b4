//! Descriptions of columns in a result, which are stepped over.

/// Deepest type in a type.
const DEEPEST: u32 = 16;

/// Length of so many strings at the beginning of `input`; `None`: they are not whole yet.
pub(super) fn strings(count: usize, input: &[u8]) -> Option<usize> {
    (0..count).try_fold(0, |at, _| {
        let length = at + 2 + usize::from(short(input, at)?);
        (length <= input.len()).then_some(length)
    })
}

/// Length of a column's description; `None`: it is not whole yet.
///
/// # Errors
/// Its type has more types in types than any has.
pub(super) fn column(global: bool, input: &[u8]) -> Result<Option<usize>, &'static str> {
    match strings(if global { 1 } else { 3 }, input) {
        Some(at) => option(input, at, DEEPEST),
        None => Ok(None),
    }
}

fn short(input: &[u8], at: usize) -> Option<u16> {
    input.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]))
}

/// End of a type that begins at `at` (section 4.2.5.2 of the specification).
fn option(input: &[u8], at: usize, deepest: u32) -> Result<Option<usize>, &'static str> {
    let Some(kind) = short(input, at) else { return Ok(None) };
    let Some(deepest) = deepest.checked_sub(1) else {
        return Err("a type with too many types in it");
    };
    let mut at = at + 2;
    let after = |at: usize, count: usize| {
        strings(count, input.get(at..).unwrap_or_default()).map(|length| at + length)
    };
    let (mut count, mut named) = (0, 0);
    match kind {
        0x00 => return Ok(after(at, 1)),
        0x20 | 0x22 => count = 1, // list, set
        0x21 => count = 2,        // map
        0x30 | 0x31 => {
            if kind == 0x30 {
                let Some(end) = after(at, 2) else { return Ok(None) };
                (at, named) = (end, 1); // a type of the user: fields have names
            }
            let Some(fields) = short(input, at) else { return Ok(None) };
            (at, count) = (at + 2, fields);
        }
        _ => {}
    }
    for _ in 0..count {
        let Some(end) = after(at, named) else { return Ok(None) };
        match option(input, end, deepest)? {
            Some(end) => at = end,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}
