//! Instants as RFC 3339 text and durations as nanoseconds: the two forms of time in Go's JSON.

use crate::fault::code;
use crate::json::Value;
use crate::read::{At, Read};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// The first second of the year 1 and the last one of the year 9999, from 1970.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;

/// A span of time in nanoseconds, as Go's `time.Duration` encodes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema,
)]
#[serde(transparent)]
#[schema(as = novacron::Duration)]
pub struct Duration(pub i64);

impl Duration {
    pub fn from_millis(millis: u64) -> Self {
        let nanos = millis.saturating_mul(1_000_000);
        Self(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

impl Read for Duration {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        i64::read(value, at).map(Self)
    }
}

/// An instant with nanoseconds and the offset that it was written with.
///
/// Ordered by instant. Whoever wants to know whether two are the same moment compares
/// `unix_nanos`; equality also asks for the same offset, so that what was read is written again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Time {
    seconds: i64,
    nanos: u32,
    offset_minutes: i16,
}

impl Default for Time {
    /// Go's zero time: the first instant of the year 1.
    fn default() -> Self {
        Self { seconds: FIRST_SECOND, nanos: 0, offset_minutes: 0 }
    }
}

impl Time {
    /// Milliseconds since 1970, in UTC.
    pub fn from_unix_millis(millis: u64) -> Self {
        let seconds = i64::try_from(millis / 1000).unwrap_or(LAST_SECOND).min(LAST_SECOND);
        let nanos = u32::try_from(millis % 1000).unwrap_or(0).saturating_mul(1_000_000);
        Self { seconds, nanos, offset_minutes: 0 }
    }

    pub fn unix_nanos(&self) -> i128 {
        let seconds = i128::from(self.seconds).saturating_mul(i128::from(NANOS_PER_SECOND));
        seconds.saturating_add(i128::from(self.nanos))
    }

    /// Milliseconds since 1970; 0 for what was before.
    pub fn unix_millis(&self) -> u64 {
        u64::try_from(self.unix_nanos() / 1_000_000).unwrap_or(0)
    }

    pub fn is_zero(&self) -> bool {
        self.unix_nanos() == Self::default().unix_nanos()
    }

    /// Reads RFC 3339. `None` if `text` is something else, or has more than nanoseconds.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let year = digits(&mut rest, 4)?;
        literal(&mut rest, "-")?;
        let month = digits(&mut rest, 2)?;
        literal(&mut rest, "-")?;
        let day = digits(&mut rest, 2)?;
        literal(&mut rest, "T").or_else(|| literal(&mut rest, "t"))?;
        let hour = digits(&mut rest, 2)?;
        literal(&mut rest, ":")?;
        let minute = digits(&mut rest, 2)?;
        literal(&mut rest, ":")?;
        let second = digits(&mut rest, 2)?;
        let nanos = fraction(&mut rest)?;
        let offset_minutes = offset(rest)?;
        let in_range = (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && year >= 1
            && hour < 24
            && minute < 60
            && second < 60;
        if !in_range {
            return None;
        }
        let local = days_from_epoch(year, month, day)
            .checked_mul(SECONDS_PER_DAY)?
            .checked_add(hour.checked_mul(3600)?)?
            .checked_add(minute.checked_mul(60)?)?
            .checked_add(second)?;
        let seconds = local.checked_sub(i64::from(offset_minutes).checked_mul(60)?)?;
        Some(Self { seconds, nanos, offset_minutes })
    }
}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |time: &Self| (time.seconds, time.nanos, time.offset_minutes);
        key(self).cmp(&key(other))
    }
}

fn literal(rest: &mut &str, expected: &str) -> Option<()> {
    *rest = rest.strip_prefix(expected)?;
    Some(())
}

fn digits(rest: &mut &str, count: usize) -> Option<i64> {
    let (number, after) = rest.split_at_checked(count)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    *rest = after;
    number.parse().ok()
}

fn fraction(rest: &mut &str) -> Option<u32> {
    let Some(after) = rest.strip_prefix('.') else { return Some(0) };
    let count = after.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = after.split_at_checked(count)?;
    if !(1..=9).contains(&count) {
        return None;
    }
    *rest = after;
    format!("{digits:0<9}").parse().ok()
}

/// `Z`, or hours and minutes east of Greenwich.
fn offset(text: &str) -> Option<i16> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let mut rest = text.get(1..)?;
    let hours = digits(&mut rest, 2)?;
    literal(&mut rest, ":")?;
    let minutes = digits(&mut rest, 2)?;
    if !rest.is_empty() || hours >= 24 || minutes >= 60 {
        return None;
    }
    let east = hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(sign)?;
    i16::try_from(east).ok()
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days before 1 January of `year`, from 1 January of the year 1.
fn days_before_year(year: i64) -> i64 {
    let past = year.saturating_sub(1);
    let leap_days = past.div_euclid(4).saturating_sub(past.div_euclid(100));
    past.saturating_mul(365).saturating_add(leap_days).saturating_add(past.div_euclid(400))
}

fn days_from_epoch(year: i64, month: i64, day: i64) -> i64 {
    let months = (1..month).map(|month| days_in_month(year, month)).sum::<i64>();
    days_before_year(year)
        .saturating_add(months)
        .saturating_add(day.saturating_sub(1))
        .saturating_sub(days_before_year(1970))
}

/// Year, month and day of a day counted from 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days.saturating_add(days_before_year(1970));
    // A guess by the mean length of a year is off by one at most.
    let guess = days.saturating_mul(400).div_euclid(146_097).saturating_add(1);
    let later = guess.saturating_add(1);
    let year = match (days_before_year(guess) > days, days_before_year(later) <= days) {
        (true, _) => guess.saturating_sub(1),
        (_, true) => later,
        _ => guess,
    };
    let mut left = days.saturating_sub(days_before_year(year));
    let mut month = 1;
    while month < 12 && left >= days_in_month(year, month) {
        left = left.saturating_sub(days_in_month(year, month));
        month = month.saturating_add(1);
    }
    (year, month, left.saturating_add(1))
}

/// As Go writes it: with as many digits of the fraction as there are.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let east = i64::from(self.offset_minutes);
        let local = self.seconds.saturating_add(east.saturating_mul(60));
        let (year, month, day) = date(local.div_euclid(SECONDS_PER_DAY));
        let second = local.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute) = (second / 3600, second / 60 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}", second % 60)?;
        if self.nanos != 0 {
            let fraction = format!("{:09}", self.nanos);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        if east == 0 {
            return f.write_str("Z");
        }
        let sign = if east < 0 { '-' } else { '+' };
        let east = east.unsigned_abs();
        write!(f, "{sign}{:02}:{:02}", east / 60, east % 60)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Read for Time {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let text = at.text(value)?;
        let time = Time::parse(text);
        if time.is_none() {
            let message = format!("{} is not a time", value.describe());
            at.fault(code::WRONG_TYPE, message, "send RFC 3339, such as 2026-01-31T12:00:00.5Z");
        }
        time
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 with up to nine digits of a second's fraction."))
            .build()
            .into()
    }
}

impl ToSchema for Time {
    fn name() -> Cow<'static, str> {
        "novacron.Time".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, unix_nanos: i128) {
        let time = Time::parse(text).unwrap_or_else(|| panic!("{text} is a time"));
        assert_eq!(time.unix_nanos(), unix_nanos, "{text}");
        assert_eq!(time.to_string(), text);
    }

    #[test]
    fn what_is_read_is_written_again() {
        check("1970-01-01T00:00:00Z", 0);
        check("1969-12-31T23:59:59.999999999Z", -1);
        check("2026-04-19T10:15:00.000000001+02:00", 1_776_586_500_000_000_001);
        check("2000-02-29T12:00:00.25-05:30", 951_845_400_250_000_000);
        check("0001-01-01T00:00:00Z", -62_135_596_800_000_000_000);
        check("9999-12-31T23:59:59Z", 253_402_300_799_000_000_000);
        assert_eq!(Time::default().to_string(), "0001-01-01T00:00:00Z");
        assert_eq!(Time::from_unix_millis(1_500).to_string(), "1970-01-01T00:00:01.5Z");
    }

    #[test]
    fn every_day_of_four_centuries_keeps_its_date() {
        for day in 0..146_097 {
            let (year, month, date) = date(day);
            assert_eq!(days_from_epoch(year, month, date), day);
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2026-04-19",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.1234567890Z",
            "2026-01-01T00:00:00+2:00",
            "2026-01-01T00:00:00+02:60",
            "2026-01-01T00:00:00Zx",
            "0000-01-01T00:00:00Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:0\u{e9}Z",
        ] {
            assert_eq!(Time::parse(text), None, "{text:?}");
        }
    }
}
