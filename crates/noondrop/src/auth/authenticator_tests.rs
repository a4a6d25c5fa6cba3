//! From headers to a caller, with real settings.

use std::fs;

use http::HeaderValue;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::json;

use super::*;
use crate::auth::TokenFault;
use crate::config::{Sources, load};

const NOW: UnixSeconds = UnixSeconds(1_800_000_000);
const SHARED: &str = "0123456789abcdef0123456789abcdef";

fn authenticator(text: &str) -> Result<Authenticator, ConfigError> {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("noondrop.toml");
    fs::write(&path, text).unwrap();
    let loaded = load::load(&Sources { file: Some(path), ..Sources::default() }).unwrap();
    Authenticator::new(&loaded.settings, None)
}

fn headers(values: &[&str]) -> HeaderMap {
    let values = values.iter().map(|value| (AUTHORIZATION, HeaderValue::from_str(value).unwrap()));
    let mut headers = HeaderMap::new();
    for (name, value) in values {
        headers.append(name, value);
    }
    headers
}

fn bearer(credential: &str) -> HeaderMap {
    headers(&[&format!("Bearer {credential}")])
}

fn principal(role: Role, rest: &str) -> (String, Secret) {
    let secret = Secret::generate(role).unwrap();
    let text = format!(
        "[[principals]]\nname = \"app\"\nrole = \"{role}\"\n{rest}\nsecrets = [{{ hash = \"{}\" }}]\n",
        secret.hash()
    );
    (text, secret)
}

fn issuer() -> String {
    format!(
        "[[jwt]]\nissuer = \"i\"\naudience = \"noondrop\"\nleeway_seconds = 0\n\
         keys = [{{ kid = \"1\", alg = \"HS256\", secret = \"{SHARED}\" }}]\n"
    )
}

fn token(subject: &str) -> String {
    let claims =
        json!({"iss": "i", "aud": "noondrop", "exp": NOW.0 + 60, "sub": subject, "shop": "main"});
    let header = Header { kid: Some("1".into()), ..Header::new(Algorithm::HS256) };
    let key = EncodingKey::from_secret(SHARED.as_bytes());
    jsonwebtoken::encode(&header, &claims, &key.unwrap()).unwrap()
}

#[test]
fn a_secret_names_its_principal_and_shop() {
    let (seller, secret) = principal(Role::Seller, "");
    let known = authenticator(&seller).unwrap();
    let identity = known.authenticate_at(&bearer(secret.reveal()), NOW).unwrap();
    assert_eq!((identity.shop.as_deref(), &*identity.name), (Some("main"), "app"));
    assert_eq!((identity.role, identity.buyer.as_deref()), (Role::Seller, None));
    let (other, secret) = principal(Role::Admin, "shop = \"other\"");
    let known = authenticator(&other).unwrap();
    let identity = known.authenticate_at(&bearer(secret.reveal()), NOW).unwrap();
    assert_eq!(identity.shop.as_deref(), Some("other"));
}

#[test]
fn an_operator_belongs_to_no_shop() {
    let (operator, secret) = principal(Role::Operator, "");
    let known = authenticator(&operator).unwrap();
    assert_eq!(known.authenticate_at(&bearer(secret.reveal()), NOW).unwrap().shop, None);
}

#[test]
fn the_admin_of_a_first_start_counts() {
    let home = tempfile::tempdir().unwrap();
    let admin = crate::auth::bootstrap(home.path()).unwrap();
    let settings = load::load(&Sources::default()).unwrap().settings;
    let known = Authenticator::new(&settings, Some(&admin)).unwrap();
    let secret = fs::read_to_string(admin.path()).unwrap();
    let identity = known.authenticate_at(&bearer(secret.trim_end()), NOW).unwrap();
    assert_eq!((identity.role, identity.shop.as_deref()), (Role::Admin, Some("main")));
}

#[test]
fn a_header_that_is_not_exactly_one_credential_is_refused() {
    let (seller, secret) = principal(Role::Seller, "");
    let known = authenticator(&seller).unwrap();
    let good = format!("Bearer {}", secret.reveal());
    let fault = |values: &[&str]| known.authenticate_at(&headers(values), NOW).unwrap_err();
    assert_eq!(fault(&[]), AuthError::Missing);
    assert_eq!(fault(&[&good, &good]), AuthError::Repeated);
    let two = format!("{good}, {good}");
    let spaced = format!("Bearer  {}", secret.reveal());
    let long = format!("Bearer {}", "a".repeat(8_193));
    let cut = &good[..good.len() - 1];
    for wrong in [
        "",
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        secret.reveal(),
        &two,
        &spaced,
        &long,
        cut,
        "Bearer a.b",
    ] {
        assert_eq!(fault(&[wrong]), AuthError::Malformed, "{wrong}");
    }
    assert!(known.authenticate_at(&headers(&[&good.replace("Bearer", "bearer")]), NOW).is_ok());
}

#[test]
fn a_stranger_and_an_expired_secret_look_alike() {
    let secret = Secret::generate(Role::Seller).unwrap();
    let known = authenticator(&format!(
        "[[principals]]\nname = \"app\"\nrole = \"seller\"\nsecrets = [{{ hash = \"{}\", expires = \"2020-01-01T00:00:00Z\" }}]\n",
        secret.hash()
    ))
    .unwrap();
    let stranger = Secret::generate(Role::Seller).unwrap();
    let fault = |secret: &Secret| known.authenticate_at(&bearer(secret.reveal()), NOW).unwrap_err();
    assert_eq!(fault(&secret), AuthError::SecretExpired);
    assert_eq!(fault(&stranger), AuthError::UnknownSecret);
    assert_eq!(fault(&secret).detail(), fault(&stranger).detail());
}

#[test]
fn a_token_names_its_buyer_and_nothing_more() {
    let known = authenticator(&issuer()).unwrap();
    let identity = known.authenticate_at(&bearer(&token("cus_1")), NOW).unwrap();
    assert_eq!((identity.role, identity.buyer.as_deref()), (Role::Buyer, Some("cus_1")));
    assert_eq!((identity.shop.as_deref(), identity.issuer.as_deref()), (Some("main"), Some("i")));
}

#[test]
fn a_remembered_token_still_ends_at_its_time() {
    let known = authenticator(&issuer()).unwrap();
    let headers = bearer(&token("cus_1"));
    let first = known.authenticate_at(&headers, NOW).unwrap();
    let second = known.authenticate_at(&headers, NOW.plus(59)).unwrap();
    assert!(Arc::ptr_eq(&first, &second), "the second check came from memory");
    let late = known.authenticate_at(&headers, NOW.plus(60));
    assert_eq!(late, Err(AuthError::Token(TokenFault::Expired)));
}

#[test]
fn without_an_issuer_no_token_counts() {
    let (seller, _) = principal(Role::Seller, "");
    let known = authenticator(&seller).unwrap();
    let refused = known.authenticate_at(&bearer(&token("cus_1")), NOW);
    assert_eq!(refused, Err(AuthError::Token(TokenFault::NoIssuer)));
}

#[test]
fn a_secret_can_stand_in_a_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("app.secret");
    let secret = Secret::generate(Role::Seller).unwrap();
    fs::write(&path, format!("{}\n", secret.reveal())).unwrap();
    let text = |role: &str| {
        let path = path.display();
        format!(
            "[[principals]]\nname = \"app\"\nrole = \"{role}\"\nsecrets = [{{ secret_file = \"{path}\" }}]\n"
        )
    };
    let known = authenticator(&text("seller")).unwrap();
    assert!(known.authenticate_at(&bearer(secret.reveal()), NOW).is_ok());
    let error = authenticator(&text("admin")).unwrap_err().to_string();
    assert!(error.contains("is a secret for the role seller"), "{error}");
    fs::write(&path, "hunter2").unwrap();
    let error = authenticator(&text("seller")).unwrap_err().to_string();
    assert!(
        error.contains("principals.0.secrets.0 is no secret") && !error.contains("hunter2"),
        "{error}"
    );
}

#[test]
fn keys_can_stand_in_files_and_all_problems_are_told() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("jwt.secret");
    fs::write(&path, format!("{SHARED}\n")).unwrap();
    let inline = format!("secret = \"{SHARED}\"");
    let in_file = issuer().replace(&inline, &format!("secret_file = \"{}\"", path.display()));
    let known = authenticator(&in_file).unwrap();
    assert!(known.authenticate_at(&bearer(&token("cus_1")), NOW).is_ok());
    let broken = format!(
        "{}{}",
        issuer().replace(&inline, "secret = \"short\""),
        in_file.replace("jwt.secret", "nowhere").replace("issuer = \"i\"", "issuer = \"j\"")
    );
    let error = authenticator(&broken).unwrap_err().to_string();
    assert!(error.contains("jwt.0.keys.0 is shorter than 32 bytes"), "{error}");
    assert!(error.contains("jwt.1.keys.0 names") && error.contains("could not be read"), "{error}");
}
