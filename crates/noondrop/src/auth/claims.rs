//! What a buyer's token says, read strictly, and whether it says so to us and now.
//!
//! The claims are RFC 7519's (section 4.1), and `shop`. Nothing here knows keys or signatures.

use serde::Deserialize;

use noondrop_core::Name;

use super::error::TokenFault;
use crate::time::UnixSeconds;

/// The claims that are looked at. All may be absent here, so that the fault can name the one that is missing.
#[derive(Debug, Deserialize)]
pub struct Claims {
    iss: Option<String>,
    aud: Option<Audience>,
    exp: Option<NumericDate>,
    nbf: Option<NumericDate>,
    sub: Option<String>,
    shop: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    fn names(&self, wanted: &str) -> bool {
        match self {
            Self::One(name) => name == wanted,
            Self::Several(names) => names.iter().any(|name| name == wanted),
        }
    }
}

/// Seconds since 1970; RFC 7519 allows parts of a second, which are cut off.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum NumericDate {
    Whole(u64),
    Part(f64),
}

impl NumericDate {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from f64 saturates: before 1970 is 1970, beyond the end of time is the end of time"
    )]
    fn seconds(self) -> u64 {
        match self {
            Self::Whole(seconds) => seconds,
            Self::Part(seconds) => seconds as u64,
        }
    }
}

/// What an issuer's tokens must say.
#[derive(Debug)]
pub struct Expected {
    /// The claim `iss`.
    pub issuer: String,
    /// The claim `aud`.
    pub audience: String,
    /// The shop of all its tokens; none: the claim says.
    pub shop: Option<String>,
    /// How far the clocks may be apart.
    pub leeway_seconds: u64,
}

/// What a token that counts says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The buyer.
    pub subject: String,
    /// His shop.
    pub shop: String,
    /// From this time on it no longer counts.
    pub until: UnixSeconds,
}

impl Claims {
    /// Whether the token is by this issuer, for us, and valid at a time.
    pub fn accept(self, expected: &Expected, at: UnixSeconds) -> Result<Accepted, TokenFault> {
        self.check_parties(expected)?;
        let until = self.check_time(expected.leeway_seconds, at)?;
        let subject = name_of("sub", self.sub.ok_or(TokenFault::MissingClaim("sub"))?)?;
        let shop = shop_of(self.shop, expected.shop.as_deref())?;
        Ok(Accepted { subject, shop, until })
    }

    fn check_parties(&self, expected: &Expected) -> Result<(), TokenFault> {
        let issuer = self.iss.as_ref().ok_or(TokenFault::MissingClaim("iss"))?;
        if *issuer != expected.issuer {
            return Err(TokenFault::WrongIssuer);
        }
        let audience = self.aud.as_ref().ok_or(TokenFault::MissingClaim("aud"))?;
        if audience.names(&expected.audience) { Ok(()) } else { Err(TokenFault::WrongAudience) }
    }

    fn check_time(&self, leeway: u64, at: UnixSeconds) -> Result<UnixSeconds, TokenFault> {
        let expires = self.exp.ok_or(TokenFault::MissingClaim("exp"))?.seconds();
        let until = UnixSeconds(expires).plus(leeway);
        if until <= at {
            return Err(TokenFault::Expired);
        }
        match self.nbf {
            Some(begins) if at.plus(leeway).0 < begins.seconds() => Err(TokenFault::NotYetValid),
            _ => Ok(until),
        }
    }
}

fn name_of(claim: &'static str, text: String) -> Result<String, TokenFault> {
    if Name::is_valid(&text) { Ok(text) } else { Err(TokenFault::BadClaim(claim)) }
}

fn shop_of(claimed: Option<String>, fixed: Option<&str>) -> Result<String, TokenFault> {
    match (claimed, fixed) {
        (Some(claimed), Some(fixed)) if claimed != fixed => Err(TokenFault::WrongShop),
        (Some(claimed), _) => name_of("shop", claimed),
        (None, Some(fixed)) => Ok(fixed.to_owned()),
        (None, None) => Err(TokenFault::MissingClaim("shop")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: UnixSeconds = UnixSeconds(1_000_000);

    fn expected() -> Expected {
        Expected {
            issuer: "https://shop.example".into(),
            audience: "noondrop".into(),
            shop: None,
            leeway_seconds: 30,
        }
    }

    fn good() -> Value {
        json!({"iss": "https://shop.example", "aud": "noondrop", "exp": NOW.0 + 60, "sub": "cus_8812", "shop": "main"})
    }

    fn accept(claims: Value) -> Result<Accepted, TokenFault> {
        serde_json::from_value::<Claims>(claims).unwrap().accept(&expected(), NOW)
    }

    fn with(claim: &str, value: Value) -> Result<Accepted, TokenFault> {
        let mut claims = good();
        claims[claim] = value;
        accept(claims)
    }

    fn without(claim: &str) -> Result<Accepted, TokenFault> {
        let mut claims = good();
        claims.as_object_mut().unwrap().remove(claim);
        accept(claims)
    }

    #[test]
    fn a_good_token_names_buyer_and_shop() {
        let accepted = accept(good()).unwrap();
        assert_eq!((accepted.subject.as_str(), accepted.shop.as_str()), ("cus_8812", "main"));
        assert_eq!(accepted.until, NOW.plus(90));
    }

    #[test]
    fn every_claim_but_nbf_must_be_there() {
        for claim in ["iss", "aud", "exp", "sub", "shop"] {
            assert_eq!(without(claim), Err(TokenFault::MissingClaim(claim)));
        }
    }

    #[test]
    fn another_party_is_refused() {
        let issuer = with("iss", json!("https://shop.example.evil"));
        assert_eq!(issuer, Err(TokenFault::WrongIssuer));
        assert_eq!(with("aud", json!("billing")), Err(TokenFault::WrongAudience));
        assert_eq!(with("aud", json!(["billing"])), Err(TokenFault::WrongAudience));
        assert_eq!(with("aud", json!([])), Err(TokenFault::WrongAudience));
        assert!(with("aud", json!(["billing", "noondrop"])).is_ok());
    }

    #[test]
    fn a_token_ends_at_its_time_plus_leeway() {
        assert!(with("exp", json!(NOW.0 - 29)).is_ok());
        assert_eq!(with("exp", json!(NOW.0 - 30)), Err(TokenFault::Expired));
        assert_eq!(with("exp", json!(-1)), Err(TokenFault::Expired));
        assert!(with("exp", json!(1_000_000.5)).is_ok());
    }

    #[test]
    fn a_token_begins_at_its_time_minus_leeway() {
        assert!(with("nbf", json!(NOW.0 + 30)).is_ok());
        assert_eq!(with("nbf", json!(NOW.0 + 31)), Err(TokenFault::NotYetValid));
    }

    #[test]
    fn a_subject_is_a_name() {
        for wrong in ["", "a b", "ü", "a/b", &"x".repeat(65)] {
            assert_eq!(with("sub", json!(wrong)), Err(TokenFault::BadClaim("sub")), "{wrong}");
        }
        assert!(with("sub", json!("x".repeat(64))).is_ok());
    }

    #[test]
    fn an_issuer_of_one_shop_cannot_speak_for_another() {
        let expected = Expected { shop: Some("main".into()), ..expected() };
        let accept = |claims: Value| {
            serde_json::from_value::<Claims>(claims).unwrap().accept(&expected, NOW)
        };
        let mut claims = good();
        assert!(accept(claims.clone()).is_ok());
        claims["shop"] = json!("other");
        assert_eq!(accept(claims.clone()), Err(TokenFault::WrongShop));
        claims.as_object_mut().unwrap().remove("shop");
        assert_eq!(accept(claims).unwrap().shop, "main");
    }

    #[test]
    fn a_claim_of_another_type_or_twice_is_no_claim() {
        for wrong in [r#"{"sub":5}"#, r#"{"exp":"soon"}"#, r#"{"sub":"a","sub":"b"}"#] {
            assert!(serde_json::from_str::<Claims>(wrong).is_err(), "{wrong}");
        }
    }
}
