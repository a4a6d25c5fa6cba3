//! `noondrop principal add|list`: makes secrets for those who may call, and lists who may.
//!
//! `add` changes no file: it prints the lines to paste, so that the configuration stays in its owner's hands.

use std::io::Write;

use clap::{Args, Subcommand};
use noondrop_core::Name;

use super::{ConfigArguments, Failure};
use crate::auth::{Role, Secret};
use crate::config::settings::parse_time;
use crate::config::{DEFAULT_SHOP, PrincipalSettings, load};
use crate::time::{self, UnixSeconds};

/// Options of `principal`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// What to do with principals.
    #[command(subcommand)]
    pub act: Act,
}

/// What can be done with principals.
#[derive(Clone, Debug, Subcommand)]
pub enum Act {
    /// Makes a secret, prints it once, and prints the lines to paste into the configuration. Works on nothing.
    Add(AddOptions),
    /// Lists the configured principals. Works on the configuration alone.
    List(ListOptions),
}

/// Options of `principal add`.
#[derive(Clone, Debug, Args)]
pub struct AddOptions {
    /// Its name: 1 to 64 characters of A-Z a-z 0-9 . _ ~ -
    pub name: String,
    /// What it may do
    #[arg(long)]
    pub role: Role,
    /// Its shop; an operator has none
    #[arg(long)]
    pub shop: Option<String>,
    /// When the secret ends, such as 2027-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,
}

/// Options of `principal list`.
#[derive(Clone, Debug, Args)]
pub struct ListOptions {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArguments,
}

/// Does what was asked for.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    match &options.act {
        Act::Add(options) => add(options, out),
        Act::List(options) => list(options, out),
    }
}

fn add(options: &AddOptions, out: &mut dyn Write) -> Result<(), Failure> {
    check(options)?;
    let secret = Secret::generate(options.role)?;
    writeln!(out, "The secret, shown this once:\n\n    {}\n", secret.reveal())?;
    writeln!(out, "For the configuration file, which needs only its hash:\n")?;
    writeln!(out, "[[principals]]\nname = {:?}\nrole = \"{}\"", options.name, options.role)?;
    if options.role != Role::Operator {
        writeln!(out, "shop = {:?}", options.shop.as_deref().unwrap_or(DEFAULT_SHOP))?;
    }
    let expires = options.expires.as_ref().map(|time| format!(", expires = {time:?}"));
    let hash = secret.hash();
    writeln!(out, "secrets = [{{ hash = \"{hash}\"{} }}]", expires.unwrap_or_default())?;
    writeln!(
        out,
        "\nIf the principal is there already, add the entry to its secrets: both count."
    )?;
    Ok(())
}

fn check(options: &AddOptions) -> Result<(), Failure> {
    let name = |what: &str, text: &str| {
        Name::parse(text).map_err(|error| format!("the {what} {text:?} must be {error}"))
    };
    name("name", &options.name)?;
    if let Some(shop) = &options.shop {
        name("shop", shop)?;
    }
    match (options.role, &options.shop) {
        (Role::Buyer, _) => {
            return Err("buyers have no secrets; they come with a token, see [[jwt]]".into());
        }
        (Role::Operator, Some(_)) => return Err("an operator belongs to no shop".into()),
        _ => {}
    }
    if let Some(time) = &options.expires {
        parse_time(time)
            .ok_or_else(|| format!("{time:?} is no time such as 2027-01-31T00:00:00Z"))?;
    }
    Ok(())
}

fn list(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let loaded = load::load(&options.config.sources(Vec::new()))?;
    let principals = &loaded.settings.principals;
    if principals.is_empty() {
        writeln!(out, "No principals are configured; `noondrop principal add` makes one.")?;
        return Ok(());
    }
    writeln!(out, "{:<24} {:<10} {:<16} SECRETS", "NAME", "ROLE", "SHOP")?;
    for principal in principals {
        let shop = match principal.role {
            Role::Operator => "-",
            _ => principal.shop.as_deref().unwrap_or(DEFAULT_SHOP),
        };
        let secrets = secrets(principal, time::now());
        writeln!(
            out,
            "{:<24} {:<10} {shop:<16} {secrets}",
            principal.name,
            principal.role.as_str()
        )?;
    }
    Ok(())
}

fn secrets(principal: &PrincipalSettings, at: UnixSeconds) -> String {
    let expired = |expires: Option<UnixSeconds>| expires.is_some_and(|expires| expires <= at);
    let dead = principal.secrets.iter().filter(|secret| expired(secret.expires)).count();
    let live = principal.secrets.len() - dead;
    if dead == 0 { format!("{live} live") } else { format!("{live} live, {dead} expired") }
}
