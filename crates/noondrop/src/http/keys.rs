//! Idempotency keys as they come in a header: bare, or as a structured-field string (RFC 9651).

use http::HeaderMap;
use noondrop_core::Act;
use noondrop_core::limits::KEY_BYTES_MAX;

use super::problem::Problem;

const HEADER: &str = "idempotency-key";

/// Whether a request needs a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPolicy {
    /// Without one a retry could do it twice.
    Required,
    /// The act names itself: doing it twice is doing it once.
    Optional,
    /// A definition: the same again changes nothing, and no answer is kept.
    Ignored,
}

impl KeyPolicy {
    /// What an act needs.
    #[must_use]
    pub const fn of(act: &Act) -> Self {
        match act {
            Act::HoldCreate(_)
            | Act::HoldExtend(_)
            | Act::ItemAdjust(_)
            | Act::ItemSeats(_)
            | Act::ItemBlock(_)
            | Act::ItemUnblock(_) => Self::Required,
            Act::HoldConfirm(_) | Act::HoldRelease(_) | Act::HoldCancel(_) => Self::Optional,
            Act::ShopPut(_)
            | Act::SalePut(_)
            | Act::SaleMove(_)
            | Act::ItemPut(_)
            | Act::BuyerErase(_) => Self::Ignored,
        }
    }
}

/// The key of a request.
pub fn idempotency_key(headers: &HeaderMap, policy: KeyPolicy) -> Result<Option<String>, Problem> {
    if policy == KeyPolicy::Ignored {
        return Ok(None);
    }
    let mut values = headers.get_all(HEADER).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(malformed("Send one Idempotency-Key header, not several."));
    }
    match first {
        None if policy == KeyPolicy::Required => Err(Problem::new(
            "key_missing",
            "Send an Idempotency-Key header, derived from the cart, so that a retry cannot do it twice.",
        )
        .with("field", "Idempotency-Key")),
        None => Ok(None),
        Some(value) => {
            let text = value.to_str().map_err(|_| malformed("It must be printable ASCII."))?;
            unquoted(text.trim()).map(Some)
        }
    }
}

fn malformed(detail: &str) -> Problem {
    Problem::new("key_malformed", detail)
        .with("field", "Idempotency-Key")
        .with("bound", format!("1 to {KEY_BYTES_MAX} printable ASCII characters"))
}

fn unquoted(text: &str) -> Result<String, Problem> {
    let Some(inner) = text.strip_prefix('"') else { return bounded(text.to_owned()) };
    let inner =
        inner.strip_suffix('"').ok_or_else(|| malformed("Its closing quote is missing."))?;
    let mut key = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('"' | '\\')) => key.push(escaped),
                _ => return Err(malformed("A backslash escapes only \" and \\.")),
            },
            '"' => return Err(malformed("A quote within it must be escaped.")),
            other => key.push(other),
        }
    }
    bounded(key)
}

fn bounded(key: String) -> Result<String, Problem> {
    if (1..=KEY_BYTES_MAX).contains(&key.len()) {
        Ok(key)
    } else {
        Err(malformed(&format!("It has {} bytes; 1 to {KEY_BYTES_MAX} are allowed.", key.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<Option<String>, &'static str> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, value.parse().expect("a header value"));
        }
        idempotency_key(&headers, KeyPolicy::Required).map_err(|problem| problem.code())
    }

    #[test]
    fn a_key_is_bare_or_quoted_and_both_mean_the_same() {
        assert_eq!(read(&["cart-817.v1"]), Ok(Some("cart-817.v1".into())));
        assert_eq!(read(&["\"cart-817.v1\""]), Ok(Some("cart-817.v1".into())));
        assert_eq!(read(&[r#""a\"b\\c""#]), Ok(Some(r#"a"b\c"#.into())));
    }

    #[test]
    fn what_could_be_read_two_ways_is_refused() {
        for bad in [vec!["a", "a"], vec!["\"a"], vec!["\"a\"b\""], vec![r#""a\n""#], vec![""]] {
            assert_eq!(read(&bad), Err("key_malformed"), "{bad:?}");
        }
        assert_eq!(read(&[&"k".repeat(256)]), Err("key_malformed"));
        assert_eq!(read(&[]), Err("key_missing"));
    }
}
