//! Exact reading of JSON numbers as unsigned integers, without going through a float.

/// Why the text of a number is not an unsigned integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotUnsigned {
    Negative,
    Fractional,
    TooLarge,
    NonFinite,
}

/// Reads a number in JSON's grammar, or one of the words that `json` lets through for it.
///
/// `4`, `4.0`, `0.4e1` and `400e-2` are all four, as JSON Schema has it.
pub(crate) fn unsigned(text: &str) -> Result<u64, NotUnsigned> {
    if text.ends_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(NotUnsigned::NonFinite);
    }
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().all(|digit| digit == b'0') {
        return Ok(0);
    }
    if negative {
        return Err(NotUnsigned::Negative);
    }
    // An exponent too long for 64 bits is out of every range; which one only depends on its sign.
    let exponent = exponent.parse::<i64>().unwrap_or(match exponent.starts_with('-') {
        true => i64::MIN,
        false => i64::MAX,
    });
    let trailing_zeros = digits().rev().take_while(|&digit| digit == b'0').count();
    let scale =
        exponent.saturating_sub(fraction.len() as i64).saturating_add(trailing_zeros as i64);
    if scale < 0 {
        return Err(NotUnsigned::Fractional);
    }
    let significant = whole.len().saturating_add(fraction.len()).saturating_sub(trailing_zeros);
    let mut value: u64 = 0;
    for digit in digits().take(significant) {
        let digit = u64::from(digit.wrapping_sub(b'0'));
        let shifted = value.checked_mul(10).and_then(|value| value.checked_add(digit));
        value = shifted.ok_or(NotUnsigned::TooLarge)?;
    }
    // The value is not zero, so the loop ends with an overflow after at most twenty rounds.
    for _ in 0..scale {
        value = value.checked_mul(10).ok_or(NotUnsigned::TooLarge)?;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_is_read_however_it_is_written() {
        for text in ["4", "4.0", "4.000", "0.4e1", "400e-2", "4E0", "0.04e+2"] {
            assert_eq!(unsigned(text), Ok(4), "{text}");
        }
        for text in ["0", "-0", "0.0", "-0.0e9", "0e99999999999999999999"] {
            assert_eq!(unsigned(text), Ok(0), "{text}");
        }
        assert_eq!(unsigned("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(unsigned("1e19"), Ok(10_000_000_000_000_000_000));
    }

    #[test]
    fn what_is_no_unsigned_integer_is_refused_with_the_reason() {
        let check = |text: &str, expect| assert_eq!(unsigned(text), Err(expect), "{text}");
        check("-1", NotUnsigned::Negative);
        check("-0.5", NotUnsigned::Negative);
        check("1.5", NotUnsigned::Fractional);
        check("1e-400", NotUnsigned::Fractional);
        check("1e-99999999999999999999", NotUnsigned::Fractional);
        check("18446744073709551616", NotUnsigned::TooLarge);
        check("1e400", NotUnsigned::TooLarge);
        check("1e99999999999999999999", NotUnsigned::TooLarge);
        check("NaN", NotUnsigned::NonFinite);
        check("-Infinity", NotUnsigned::NonFinite);
    }
}
