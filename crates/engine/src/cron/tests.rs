//! Tests of crontab lines.

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn next(line: &str, after: &str, zone_name: &str) -> Option<String> {
    let zone = zone(zone_name);
    let after: DateTime = after.parse().unwrap();
    let after = after.to_zoned(zone.clone()).unwrap().timestamp();
    let found = Schedule::parse(line).unwrap().next(after, &zone)?;
    Some(found.to_zoned(zone).datetime().to_string())
}

#[test]
fn every_vector_of_the_dialect_is_met() {
    let vectors: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("testdata/vectors.json")).unwrap();
    assert_eq!(vectors.len(), 70);
    for vector in &vectors {
        let second = vector["t"].as_i64().unwrap();
        let line = vector["spec"].as_str().unwrap();
        let zone = zone(vector["tz"].as_str().unwrap());
        let next = |second| {
            let after = Timestamp::from_second(second).unwrap();
            Schedule::parse(line).unwrap().next(after, &zone).map(Timestamp::as_second)
        };
        match vector["kind"].as_str().unwrap() {
            "act" => {
                assert_eq!(next(second - 1) == Some(second), vector["exp"].as_bool().unwrap(), "{vector}");
            }
            _ => assert_eq!(next(second), vector["exp"].as_i64(), "{vector}"),
        }
    }
}

#[test]
fn every_so_often_is_counted_from_the_whole_second() {
    let after = Timestamp::from_millisecond(1_341_845_100_700).unwrap();
    for (line, expected) in [
        ("@every 5m", 1_341_845_400),
        ("@every 1500ms", 1_341_845_101),
        ("@every 3ns", 1_341_845_101),
        ("@every -5s", 1_341_845_101),
        ("TZ=Asia/Tokyo @every 1h0m1s", 1_341_848_701),
    ] {
        let found = Schedule::parse(line).unwrap().next(after, &TimeZone::UTC).unwrap();
        assert_eq!(found, Timestamp::from_second(expected).unwrap(), "{line}");
    }
}

#[test]
fn a_line_can_name_its_time_zone() {
    let after: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
    for (line, expected) in [
        ("TZ=Asia/Tokyo 0 10 * * *", "2024-01-01T01:00:00Z"),
        ("TZ=America/New_York 30 0 10 * * *", "2024-01-01T15:00:30Z"),
        ("TZ= 0 10 * * *", "2024-01-01T10:00:00Z"),
        ("TZ=Asia/Tokyo @daily", "2024-01-01T15:00:00Z"),
        ("TZ=Local 0 10 * * *", "2024-01-01T04:30:00Z"),
        ("0 10 * * *", "2024-01-01T04:30:00Z"),
    ] {
        let found = Schedule::parse(line).unwrap().next(after, &zone("Asia/Kolkata")).unwrap();
        assert_eq!(found.to_string(), expected, "{line}");
    }
}

#[test]
fn a_zone_that_is_half_an_hour_off_misses_nothing() {
    let found = next("0 10 * * *", "2024-03-01T08:10:00", "Asia/Kolkata");
    assert_eq!(found.as_deref(), Some("2024-03-01T10:00:00"));
    let found = next("15 2 * * *", "2024-10-05T23:00:00", "Australia/Lord_Howe");
    assert_eq!(found.as_deref(), Some("2024-10-07T02:15:00"), "02:00 to 02:29 is left out on the 6th");
}

#[test]
fn days_whose_midnight_is_left_out_do_not_shift_later_days() {
    // In 2024, clocks in Cairo went from 00:00 to 01:00 on 26 April.
    let found = next("0 0 28 * *", "2024-04-20T12:00:00", "Africa/Cairo");
    assert_eq!(found.as_deref(), Some("2024-04-28T00:00:00"));
    let found = next("0 1 26 * *", "2024-04-25T23:30:00", "Africa/Cairo");
    assert_eq!(found.as_deref(), Some("2024-04-26T01:00:00"));
    let found = next("0 0 * * *", "2024-04-25T12:00:00", "Africa/Cairo");
    assert_eq!(found.as_deref(), Some("2024-04-27T00:00:00"));
}

#[test]
fn what_is_wrong_is_said_in_the_words_of_the_dialect() {
    for (line, expected) in [
        ("", "Empty spec string"),
        ("   ", "Empty spec string"),
        ("TZ=UTC", "Empty spec string"),
        ("x", "Expected 5 or 6 fields, found 1: x"),
        ("* * * *", "Expected 5 or 6 fields, found 4"),
        ("* * * * * * *", "Expected 5 or 6 fields, found 7"),
        ("* * * 22 *", "End of range (22) above maximum (12): 22"),
        ("60 * * * *", "End of range (60) above maximum (59): 60"),
        ("* * * * 7", "End of range (7) above maximum (6): 7"),
        ("* * 0 * *", "Beginning of range (0) below minimum (1): 0"),
        ("5-3 * * * *", "Beginning of range (5) beyond end of range (3): 5-3"),
        ("1-2-3 * * * *", "Too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "Too many slashes: 1/2/3"),
        ("*/0 * * * *", "Step of range should be a positive number: */0"),
        ("*/x * * * *", "Failed to parse int from x"),
        ("-5 * * * *", "Failed to parse int from "),
        ("mon * * * *", "Failed to parse int from mon"),
        ("99999999999999999999 * * * *", "Failed to parse int from 99999999999999999999"),
        (", * * * *", "Empty field: ,"),
        ("@never", "Unrecognized descriptor: @never"),
        ("@every", "Unrecognized descriptor: @every"),
        ("@every 5", "Failed to parse duration @every 5: missing unit"),
        ("TZ=Mars/Olympus * * * * *", "Provided bad location Mars/Olympus"),
        ("CRON_TZ=UTC * * * * *", "Failed to parse int from CRON_TZ=UTC"),
    ] {
        let message = Schedule::parse(line).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{line}: {message}");
    }
}

#[test]
fn moments_at_the_end_of_time_are_no_moments() {
    for line in ["* * * * *", "@every 1h", "0 0 29 2 *"] {
        assert_eq!(Schedule::parse(line).unwrap().next(Timestamp::MAX, &TimeZone::UTC), None, "{line}");
    }
}

proptest::proptest! {
    #[test]
    fn any_line_has_a_meaning_or_an_error(line in "[@TZ=a-z0-9*?,/ -]{0,40}", second in 0_i64..4_000_000_000) {
        if let Ok(schedule) = Schedule::parse(&line) {
            let after = Timestamp::from_second(second).unwrap();
            if let Some(found) = schedule.next(after, &zone("America/New_York")) {
                proptest::prop_assert!(found > after);
            }
        }
    }

    #[test]
    fn a_found_moment_matches_and_is_the_first(minute in 0_u8..60, step in 1_u8..30, second in 0_i64..2_000_000_000) {
        let line = format!("{minute}/{step} * * * *");
        let after = Timestamp::from_second(second).unwrap();
        let found = Schedule::parse(&line).unwrap().next(after, &TimeZone::UTC).unwrap();
        let matches = |at: i64| at % 60 == 0 && at / 60 % 60 >= i64::from(minute)
            && (at / 60 % 60 - i64::from(minute)) % i64::from(step) == 0;
        let expected = (second + 1..=second + 7200).find(|at| matches(*at)).unwrap();
        proptest::prop_assert_eq!(found.as_second(), expected);
    }
}
