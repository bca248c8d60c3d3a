//! `forecast`, which needs no service.

use crate::service::{fed, novaplace, run};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Days of 12 samples, the noon a little different every day.
fn days(id: &str, len: usize) -> String {
    let at = |t: usize| [1, 2, 4, 7, 9, 10, 10, 9, 7, 4, 2, 1][t % 12] + t / 12 % 3;
    let values: Vec<String> = (0..len).map(|t| at(t).to_string()).collect();
    format!("{id},{}\n", values.join(","))
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn every_series_gets_every_step_with_bounds_around_it() {
    let dir = TempDir::new().expect("a directory");
    let (input, output) = (dir.path().join("series.csv"), dir.path().join("fc.csv"));
    fs::write(&input, days("a", 96) + &days("b", 60)).expect("a file");
    let asked = ["--horizon", "5", "--season", "12", "--level", "90", "--model", "mstl"];
    let files = ["--input", &path(&input), "--output", &path(&output)];
    fed(novaplace().arg("forecast").args(asked).args(files), "").ends(0);
    let text = fs::read_to_string(&output).expect("forecasts");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("id,step,mean,lower,upper"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 10);
    for (place, row) in rows.iter().enumerate() {
        assert_eq!((row[0], row[1]), (["a", "b"][place / 5], &*(place % 5 + 1).to_string()));
        let number = |cell: usize| row[cell].parse::<f64>().expect("a number");
        assert!(number(3) <= number(2) && number(2) <= number(4), "{row:?}");
    }
}

#[test]
fn what_was_wrong_with_samples_is_said() {
    let args = ["forecast", "--input", "-", "--horizon", "2", "--model", "last"];
    let ran = fed(novaplace().args(args), "gappy,1,2,,4,5,inf,7,8,9,10\n").ends(0);
    ran.says(&["gappy,1,10,", "series gappy: 2 missing and filled"]);
}

#[test]
fn wrong_input_and_wrong_questions_are_named() {
    let asked = |extra: &[&str], text: &str| {
        fed(novaplace().args(["forecast", "--input", "-"]).args(extra), text)
    };
    asked(&[], "a,1,x\n").ends(255).says(&["line 1, series a: value 2, \"x\""]);
    asked(&["--model", "magic"], "a,1\n").ends(2).says(&["magic", "arima"]);
    asked(&["--level", "100"], "a,1\n").ends(2).says(&["between 0 and 100"]);
    asked(&["--horizon", "0"], "a,1\n").ends(2).says(&["0"]);
    run(&["forecast"]).ends(2).says(&["--input"]);
}

#[test]
fn a_backtest_is_a_table_and_pictures() {
    let dir = TempDir::new().expect("a directory");
    let input = dir.path().join("series.csv");
    fs::write(&input, days("a", 120) + &days("b/c", 120)).expect("a file");
    let plots = dir.path().join("plots");
    let args = ["forecast", "backtest", "--horizon", "6", "--season", "12", "--origins", "2"];
    let models = ["--models", "last,seasonal-naive", "--plotted", "2"];
    let files = ["--input", &path(&input), "--plots", &path(&plots)];
    let ran = fed(novaplace().args(args).args(models).args(files), "");
    ran.ends(0).says(&["MODEL", "COVERAGE", "seasonal-naive"]);
    let picture = fs::read_to_string(plots.join("1-b-c-last.svg")).expect("a picture");
    assert!(picture.starts_with("<svg"));
    let models = ["--models", "last", "-o", "json", "--input", &path(&input)];
    let report = fed(novaplace().args(args).args(models), "").ends(0).json();
    assert_eq!(report[0]["windows"], 4);
}
