//! Tokens that must count, and every way to forge one that must not.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use data_encoding::{BASE64, BASE64URL_NOPAD};
use serde_json::{Value, json};

use super::*;

const NOW: UnixSeconds = UnixSeconds(1_800_000_000);
const SHARED: &str = "0123456789abcdef0123456789abcdef";

/// A key pair made for one test, and how it signs.
enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Shared(Vec<u8>),
}

impl Pair {
    fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
    }

    fn ec() -> Self {
        Self::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    fn ed() -> Self {
        Self::Ed(Ed25519KeyPair::generate().unwrap())
    }

    fn shared(secret: &str) -> Self {
        Self::Shared(secret.as_bytes().to_vec())
    }

    fn public_pem(&self) -> String {
        let der: PublicKeyX509Der<'_> = match self {
            Self::Rsa(pair) => pair.public_key().as_der().unwrap(),
            Self::Ec(pair) => pair.public_key().as_der().unwrap(),
            Self::Ed(pair) => pair.public_key().as_der().unwrap(),
            Self::Shared(_) => unreachable!("a shared secret has no public half"),
        };
        pem("PUBLIC KEY", der.as_ref())
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            Self::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
            Self::Shared(secret) => {
                let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret);
                aws_lc_rs::hmac::sign(&key, message).as_ref().to_vec()
            }
        }
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        format!("{message}.{}", BASE64URL_NOPAD.encode(&self.sign(message.as_bytes())))
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let lines: Vec<String> = BASE64
        .encode(der)
        .as_bytes()
        .chunks(64)
        .map(|line| String::from_utf8(line.to_vec()).unwrap())
        .collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn message(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    format!("{}.{}", part(header), part(claims))
}

fn claims() -> Value {
    json!({"iss": "i", "aud": "noondrop", "exp": NOW.0 + 60, "sub": "cus_1", "shop": "main"})
}

fn header(alg: &str, kid: &str) -> Value {
    json!({"typ": "JWT", "alg": alg, "kid": kid})
}

fn expected(issuer: &str) -> Expected {
    Expected {
        issuer: issuer.into(),
        audience: "noondrop".into(),
        shop: Some("main".into()),
        leeway_seconds: 0,
    }
}

fn key(kid: &str, algorithm: SigningAlgorithm, text: &str) -> TokenKey {
    TokenKey::new(kid, &KeyText { algorithm, text }).unwrap()
}

fn tokens(keys: Vec<TokenKey>) -> Tokens {
    Tokens::new(vec![Issuer { expected: expected("i"), keys }])
}

fn fault(tokens: &Tokens, token: &str) -> TokenFault {
    tokens.verify(token, NOW).expect_err("must not count")
}

#[test]
fn each_algorithm_counts_with_its_own_key() {
    let (rsa, ec, ed, shared) = (Pair::rsa(), Pair::ec(), Pair::ed(), Pair::shared(SHARED));
    let tokens = tokens(vec![
        key("rsa", SigningAlgorithm::RS256, &rsa.public_pem()),
        key("ec", SigningAlgorithm::ES256, &ec.public_pem()),
        key("ed", SigningAlgorithm::EdDsa, &ed.public_pem()),
        key("shared", SigningAlgorithm::HS256, SHARED),
    ]);
    let cases = [
        ("RS256", "rsa", rsa),
        ("ES256", "ec", ec),
        ("EdDSA", "ed", ed),
        ("HS256", "shared", shared),
    ];
    for (alg, kid, pair) in cases {
        let verified = tokens.verify(&pair.token(&header(alg, kid), &claims()), NOW).unwrap();
        assert_eq!(verified.identity.buyer.as_deref(), Some("cus_1"), "{alg}");
        assert_eq!(verified.identity.shop.as_deref(), Some("main"));
        assert_eq!(verified.identity.issuer.as_deref(), Some("i"));
        assert_eq!(verified.identity.role, Role::Buyer);
        assert_eq!(verified.until, NOW.plus(60));
    }
}

#[test]
fn a_public_key_is_no_shared_secret() {
    for (pair, algorithm) in [
        (Pair::rsa(), SigningAlgorithm::RS256),
        (Pair::ec(), SigningAlgorithm::ES256),
        (Pair::ed(), SigningAlgorithm::EdDsa),
    ] {
        let public = pair.public_pem();
        let tokens = tokens(vec![key("1", algorithm, &public)]);
        for secret in [public.as_str(), public.trim_end()] {
            let forged = Pair::shared(secret).token(&header("HS256", "1"), &claims());
            assert_eq!(fault(&tokens, &forged), TokenFault::WrongAlgorithm);
        }
    }
}

#[test]
fn a_key_serves_its_own_algorithm_only() {
    let rsa = Pair::rsa();
    let tokens = tokens(vec![key("1", SigningAlgorithm::RS256, &rsa.public_pem())]);
    for alg in ["RS384", "RS512", "PS256", "ES256", "EdDSA", "HS256", "HS512"] {
        let forged = rsa.token(&header(alg, "1"), &claims());
        assert_eq!(fault(&tokens, &forged), TokenFault::WrongAlgorithm, "{alg}");
    }
}

#[test]
fn a_token_without_a_signature_does_not_count() {
    let tokens = tokens(vec![key("1", SigningAlgorithm::HS256, SHARED)]);
    for alg in ["none", "None", "NONE", ""] {
        let unsigned = format!("{}.", message(&header(alg, "1"), &claims()));
        assert_eq!(fault(&tokens, &unsigned), TokenFault::Malformed, "{alg:?}");
    }
    let unsigned = format!("{}.", message(&header("HS256", "1"), &claims()));
    assert_eq!(fault(&tokens, &unsigned), TokenFault::BadSignature);
}

#[test]
fn a_changed_token_does_not_count() {
    let ed = Pair::ed();
    let tokens = tokens(vec![key("1", SigningAlgorithm::EdDsa, &ed.public_pem())]);
    let token = ed.token(&header("EdDSA", "1"), &claims());
    let mut other = claims();
    other["sub"] = json!("cus_2");
    let signature = token.rsplit('.').next().unwrap();
    let forged = format!("{}.{signature}", message(&header("EdDSA", "1"), &other));
    assert_eq!(fault(&tokens, &forged), TokenFault::BadSignature);
    let stranger = Pair::ed().token(&header("EdDSA", "1"), &claims());
    assert_eq!(fault(&tokens, &stranger), TokenFault::BadSignature);
}

#[test]
fn a_token_must_name_a_key_that_we_have() {
    let shared = Pair::shared(SHARED);
    let tokens = tokens(vec![key("1", SigningAlgorithm::HS256, SHARED)]);
    let unknown = shared.token(&header("HS256", "2"), &claims());
    assert_eq!(fault(&tokens, &unknown), TokenFault::UnknownKey);
    let nameless = shared.token(&json!({"alg": "HS256"}), &claims());
    assert_eq!(fault(&tokens, &nameless), TokenFault::UnknownKey);
}

#[test]
fn a_key_in_the_header_is_not_believed() {
    let stranger = Pair::ec();
    let ours = Pair::ec();
    let tokens = tokens(vec![key("1", SigningAlgorithm::ES256, &ours.public_pem())]);
    let Pair::Ec(pair) = &stranger else { unreachable!("made as one above") };
    let point = pair.public_key().as_ref();
    let header = json!({"alg": "ES256", "kid": "1", "jku": "https://evil.example/keys", "jwk": {
        "kty": "EC", "crv": "P-256",
        "x": BASE64URL_NOPAD.encode(&point[1..33]), "y": BASE64URL_NOPAD.encode(&point[33..]),
    }});
    let forged = stranger.token(&header, &claims());
    assert_eq!(fault(&tokens, &forged), TokenFault::BadSignature);
}

#[test]
fn an_extension_that_must_be_understood_is_not() {
    let shared = Pair::shared(SHARED);
    let tokens = tokens(vec![key("1", SigningAlgorithm::HS256, SHARED)]);
    let headers = [
        json!({"alg": "HS256", "kid": "1", "crit": ["exp"], "exp": 1}),
        json!({"alg": "HS256", "kid": "1", "crit": ["b64"], "b64": false}),
    ];
    for header in headers {
        assert!(tokens.verify(&shared.token(&header, &claims()), NOW).is_err(), "{header}");
    }
}

#[test]
fn time_and_audience_count() {
    let shared = Pair::shared(SHARED);
    let tokens = tokens(vec![key("1", SigningAlgorithm::HS256, SHARED)]);
    let cases = [
        ("exp", json!(NOW.0), TokenFault::Expired),
        ("nbf", json!(NOW.0 + 1), TokenFault::NotYetValid),
        ("aud", json!("billing"), TokenFault::WrongAudience),
        ("iss", json!("j"), TokenFault::WrongIssuer),
        ("shop", json!("other"), TokenFault::WrongShop),
        ("sub", json!(""), TokenFault::BadClaim("sub")),
        ("sub", Value::Null, TokenFault::MissingClaim("sub")),
        ("exp", Value::Null, TokenFault::MissingClaim("exp")),
        ("exp", json!("never"), TokenFault::Malformed),
    ];
    for (claim, value, wanted) in cases {
        let mut claims = claims();
        claims[claim] = value;
        let token = shared.token(&header("HS256", "1"), &claims);
        assert_eq!(fault(&tokens, &token), wanted, "{claim}");
    }
}

#[test]
fn two_keys_count_at_once_while_one_is_replaced() {
    let (old, new) = (Pair::ed(), Pair::ed());
    let tokens = tokens(vec![
        key("old", SigningAlgorithm::EdDsa, &old.public_pem()),
        key("new", SigningAlgorithm::EdDsa, &new.public_pem()),
    ]);
    assert!(tokens.verify(&old.token(&header("EdDSA", "old"), &claims()), NOW).is_ok());
    assert!(tokens.verify(&new.token(&header("EdDSA", "new"), &claims()), NOW).is_ok());
    let crossed = old.token(&header("EdDSA", "new"), &claims());
    assert_eq!(fault(&tokens, &crossed), TokenFault::BadSignature);
}

#[test]
fn two_issuers_may_use_one_key_id_and_speak_only_for_themselves() {
    let (one, two) = (Pair::ed(), Pair::ed());
    let issuer = |name: &str, pair: &Pair| Issuer {
        expected: expected(name),
        keys: vec![key("1", SigningAlgorithm::EdDsa, &pair.public_pem())],
    };
    let tokens = Tokens::new(vec![issuer("i", &one), issuer("j", &two)]);
    let mut of_j = claims();
    of_j["iss"] = json!("j");
    assert!(tokens.verify(&one.token(&header("EdDSA", "1"), &claims()), NOW).is_ok());
    assert!(tokens.verify(&two.token(&header("EdDSA", "1"), &of_j), NOW).is_ok());
    assert!(tokens.verify(&one.token(&header("EdDSA", "1"), &of_j), NOW).is_err());
    assert!(tokens.verify(&two.token(&header("EdDSA", "1"), &claims()), NOW).is_err());
}

#[test]
fn what_is_no_token_is_malformed() {
    let tokens = tokens(vec![key("1", SigningAlgorithm::HS256, SHARED)]);
    for text in ["..", "a.b.c", "e30.e30.e30", "....", "\u{fc}.\u{fc}.\u{fc}"] {
        assert_eq!(fault(&tokens, text), TokenFault::Malformed, "{text}");
    }
    assert_eq!(fault(&Tokens::default(), "a.b.c"), TokenFault::NoIssuer);
}

#[test]
fn a_key_of_another_kind_is_refused_at_the_start() {
    let (rsa, ec, ed) =
        (Pair::rsa().public_pem(), Pair::ec().public_pem(), Pair::ed().public_pem());
    let p384 =
        Pair::Ec(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap()).public_pem();
    let private = pem("PRIVATE KEY", &[0; 48]);
    let cases = [
        (SigningAlgorithm::RS256, vec![&ec, &ed, &private]),
        (SigningAlgorithm::ES256, vec![&rsa, &ed, &p384, &private]),
        (SigningAlgorithm::EdDsa, vec![&rsa, &ec, &private]),
        (SigningAlgorithm::HS256, vec![&rsa, &ec, &ed, &private]),
    ];
    for (algorithm, texts) in cases {
        for text in texts {
            let made = TokenKey::new("1", &KeyText { algorithm, text });
            assert!(made.is_err(), "{algorithm:?} took {text}");
        }
    }
    let short = KeyText { algorithm: SigningAlgorithm::HS256, text: "hunter2" };
    assert!(TokenKey::new("1", &short).is_err());
}
