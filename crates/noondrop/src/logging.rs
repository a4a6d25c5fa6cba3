//! The program's own log, to standard error: text for people, one JSON object a line for machines.
//!
//! What was sold is in the ledger, never here, and no private text (buyer, reference, payment) belongs here either.

use std::fmt;
use std::io;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{LogFormat, LogSettings};

/// Why there is no log.
#[derive(Debug)]
pub enum LoggingError {
    /// The level is none.
    Level(String),
    /// Another log was set up before.
    SetUpTwice,
}

impl fmt::Display for LoggingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level(text) => write!(
                f,
                "is {text:?}; it must be error, warn, info, debug or trace, or a list such as \
                 \"info,noondrop_engine=debug\""
            ),
            Self::SetUpTwice => f.write_str("could not set up the log: it was set up before"),
        }
    }
}

impl std::error::Error for LoggingError {}

/// What is worth a line, from its text.
pub fn parse_level(text: &str) -> Result<Targets, LoggingError> {
    let refused = || LoggingError::Level(text.to_owned());
    if text.trim().is_empty() || text.split(',').any(|part| !names_a_level(part)) {
        return Err(refused());
    }
    text.parse().map_err(|_| refused())
}

/// Without this, a misspelt level would be taken for the name of a module.
fn names_a_level(part: &str) -> bool {
    let level = part.split_once('=').map_or(part, |(_, level)| level).trim();
    let levels = ["error", "warn", "info", "debug", "trace", "off"];
    levels.iter().any(|known| level.eq_ignore_ascii_case(known))
}

/// Sends the program's log to standard error, once per process.
pub fn init(settings: &LogSettings) -> Result<(), LoggingError> {
    let level = parse_level(&settings.level)?;
    let lines = lines(settings.format, io::stderr);
    tracing_subscriber::registry()
        .with(lines.with_filter(level))
        .try_init()
        .map_err(|_| LoggingError::SetUpTwice)
}

fn lines<W>(format: LogFormat, to: W) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'w> tracing_subscriber::fmt::MakeWriter<'w> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(to)
        .with_ansi(false)
        .with_span_events(FmtSpan::NONE);
    match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat) -> String {
        let kept = Kept::default();
        let to = kept.clone();
        let lines = lines(format, move || to.clone());
        let subscriber =
            tracing_subscriber::registry().with(lines.with_filter(parse_level("info").unwrap()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(turn = 42, "appended");
            tracing::debug!("not worth a line");
        });
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn json_is_one_object_a_line() {
        let text = logged(LogFormat::Json);
        assert_eq!(text.lines().count(), 1);
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["turn"], 42);
        assert_eq!(line["message"], "appended");
    }

    #[test]
    fn text_names_level_and_fields() {
        let text = logged(LogFormat::Text);
        assert!(text.contains("INFO") && text.contains("appended turn=42"), "{text}");
        assert!(!text.contains("not worth"));
    }

    #[test]
    fn a_misspelt_level_is_refused() {
        for text in ["", "inof", "info,noondrop=loud", "noondrop"] {
            assert!(parse_level(text).is_err(), "{text:?}");
        }
        for text in ["info", "WARN", "off", "info, noondrop_engine=debug"] {
            assert!(parse_level(text).is_ok(), "{text:?}");
        }
    }
}
