//! A forecast as a picture: what was known, what was expected with its interval, what came.

use crate::backtest::Window;
use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 320.0;
const MARGIN: f64 = 48.0;

/// One window as an SVG document; `history` is the whole series.
pub fn svg(title: &str, history: &[f64], window: &Window) -> String {
    let horizon = window.truth.len();
    // A few horizons of the past say enough and leave room for what matters.
    let from = window.origin.saturating_sub((6 * horizon).max(48));
    let known = &history[from.min(window.origin)..window.origin];
    let frame = Frame::new(known, window);
    let known_points = known.iter().enumerate().map(|(t, value)| (t as f64, *value));
    let ahead = |values: &[f64]| -> Vec<(f64, f64)> {
        let first = known.len() as f64;
        values.iter().enumerate().map(|(step, value)| (first + step as f64, *value)).collect()
    };
    let mut band = ahead(&window.forecast.upper);
    band.extend(ahead(&window.forecast.lower).into_iter().rev());
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"20\">{}</text>",
        escaped(title)
    );
    for share in [0.0, 0.5, 1.0] {
        let value = frame.low + share * (frame.high - frame.low);
        let y = frame.y(value);
        let _ = writeln!(
            out,
            "<line x1=\"{MARGIN}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
             <text x=\"4\" y=\"{:.1}\">{}</text>",
            WIDTH - MARGIN,
            y + 4.0,
            short(value)
        );
    }
    let _ = writeln!(out, "<polygon points=\"{}\" fill=\"#cfe3f7\"/>", frame.path(band));
    let mut line = |points: Vec<(f64, f64)>, style: &str| {
        let _ =
            writeln!(out, "<polyline points=\"{}\" fill=\"none\" {style}/>", frame.path(points));
    };
    line(known_points.collect(), "stroke=\"#444\"");
    line(ahead(&window.truth), "stroke=\"#444\" stroke-dasharray=\"3 3\"");
    line(ahead(&window.forecast.point), "stroke=\"#1667b7\" stroke-width=\"2\"");
    out.push_str("</svg>\n");
    out
}

struct Frame {
    low: f64,
    high: f64,
    count: f64,
}

impl Frame {
    fn new(known: &[f64], window: &Window) -> Self {
        let shown = known.iter().chain(&window.truth);
        let all = shown.chain(&window.forecast.lower).chain(&window.forecast.upper);
        let (low, high) = all
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        let (low, high) = if low < high { (low, high) } else { (0.0, 1.0) };
        Self { low, high, count: (known.len() + window.truth.len()).max(2) as f64 }
    }

    fn x(&self, place: f64) -> f64 {
        MARGIN + (WIDTH - 2.0 * MARGIN) * place / (self.count - 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        HEIGHT - MARGIN / 2.0 - (HEIGHT - 1.5 * MARGIN) * share
    }

    fn path(&self, points: Vec<(f64, f64)>) -> String {
        let seen = points.into_iter().filter(|(_, value)| value.is_finite());
        let text = seen.map(|(x, value)| format!("{:.1},{:.1}", self.x(x), self.y(value)));
        text.collect::<Vec<_>>().join(" ")
    }
}

fn short(value: f64) -> String {
    if value.abs() >= 1e5 { format!("{value:.1e}") } else { format!("{value:.1}") }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Forecast;
    use crate::prepare::Findings;

    #[test]
    fn everything_lies_on_the_page() {
        let forecast = Forecast {
            point: vec![5.0, 6.0],
            lower: vec![-1e6, f64::NAN],
            upper: vec![1e6, 7.0],
            model: "x".into(),
            findings: Findings::default(),
        };
        let window = Window { series: 0, origin: 3, forecast, truth: vec![4.0, 5.0] };
        let text = svg("a < b & c", &[1.0, 2.0, 3.0, 4.0, 5.0], &window);
        assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
        assert!(text.contains("a &lt; b &amp; c"));
        assert!(!text.contains("NaN") && !text.contains("inf"));
        for pair in text.split("points=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            for point in pair.split(' ') {
                let (x, y) = point.split_once(',').expect("a pair");
                let inside = |text: &str, most: f64| {
                    text.parse::<f64>().is_ok_and(|value| (0.0..=most).contains(&value))
                };
                assert!(inside(x, WIDTH) && inside(y, HEIGHT), "{point}");
            }
        }
    }
}
