//! `noondrop sale`: a whole sale from a file, what a sale is like, and its steps from draft to archive.

use std::error::Error;
use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::store::{address, block_on, read_token};
use super::{ConfigArguments, Failure};
use crate::auth::Secret;
use crate::config::load;
use crate::environment::{self, SECRET, SECRET_FILE, URL};
use crate::sale::apply::{apply, compare};
use crate::sale::file::{self, SaleFile};
use crate::sale::plan::{Plan, as_value};
use crate::sale::standing::sale_path;
use crate::sale::teller::{Call, Teller};
use crate::sale::{seats, show};

/// Options of `sale`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// What about it.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What is done about a sale.
#[derive(Clone, Debug, Subcommand)]
pub enum Verb {
    /// Makes a running server have the sale that a file describes. Asks a running server.
    Apply(Apply),
    /// Shows a sale and its items. Asks a running server.
    Show(Named),
    /// Opens a draft, now or at its opening time. Asks a running server.
    Publish(Named),
    /// Stops selling for a while; holds stay. Asks a running server.
    Pause(Named),
    /// Goes on after a pause. Asks a running server.
    Resume(Named),
    /// Ends the sale; holds may still be confirmed. Asks a running server.
    Close(Named),
    /// Opens a closed sale again. Asks a running server.
    Reopen(Named),
    /// Puts a closed sale away for ever. Asks a running server.
    Archive(Named),
}

/// Which server, and as whom.
#[derive(Clone, Debug, Default, Args)]
pub struct ServerArguments {
    /// The configuration, for the address.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Where the server listens.
    #[arg(
        long,
        value_name = "URL",
        help = "Where the server listens, such as http://127.0.0.1:7878 [default: $NOONDROP_URL, or the configuration's server.listen]"
    )]
    pub url: Option<String>,
    /// File with an admin's secret.
    #[arg(
        long,
        value_name = "FILE",
        alias = "token-file",
        help = "File with an admin's secret [default: $NOONDROP_SECRET_FILE, or the secret itself in $NOONDROP_SECRET]"
    )]
    pub secret_file: Option<PathBuf>,
    /// The shop, for an operator's secret
    #[arg(long, value_name = "SHOP")]
    pub shop: Option<String>,
}

/// Options of `sale apply`.
#[derive(Clone, Debug, Args)]
pub struct Apply {
    /// The sale in TOML; examples/noon.toml shows what may stand there
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Seats as CSV for the only item of seats, instead of the file that it names
    #[arg(long, value_name = "CSV")]
    pub seats: Option<PathBuf>,
    /// Only show the difference: ends with 0 if there is none, with 2 if there is one, with 1 on errors
    #[arg(long)]
    pub dry_run: bool,
    /// Print the difference as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArguments,
}

/// A sale that is named.
#[derive(Clone, Debug, Args)]
pub struct Named {
    /// Its name
    #[arg(value_name = "SALE")]
    pub sale: String,
    /// Print the server's answer as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArguments,
}

/// A dry run found a difference: no error, but not 0 either.
#[derive(Debug)]
pub struct Differs;

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server differs from the file")
    }
}

impl Error for Differs {}

/// Does what the verb says.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    match &options.verb {
        Verb::Apply(options) => run_apply(options, out),
        Verb::Show(options) => run_show(options, out),
        Verb::Publish(options) => step(options, "publish", out),
        Verb::Pause(options) => step(options, "pause", out),
        Verb::Resume(options) => step(options, "resume", out),
        Verb::Close(options) => step(options, "close", out),
        Verb::Reopen(options) => step(options, "reopen", out),
        Verb::Archive(options) => step(options, "archive", out),
    }
}

impl ServerArguments {
    /// The conversation with the server that is meant.
    fn teller(&self) -> Result<Teller, Failure> {
        if let Some(shop) = &self.shop {
            named("--shop", shop)?;
        }
        Ok(Teller::new(self.address()?, &self.secret()?, self.shop.as_deref()))
    }

    fn address(&self) -> Result<SocketAddr, Failure> {
        match self.url.clone().or_else(|| variable(URL)) {
            Some(url) => address(&url),
            None => Ok(load::load(&self.config.sources(Vec::new()))?.settings.server.listen),
        }
    }

    fn secret(&self) -> Result<String, Failure> {
        if let Some(file) = &self.secret_file {
            return read_token(file);
        }
        if let Some(secret) = variable(SECRET) {
            let secret = Secret::parse(secret.trim());
            let secret =
                secret.ok_or_else(|| format!("{SECRET} holds no secret of a principal"))?;
            return Ok(secret.reveal().to_owned());
        }
        match variable(SECRET_FILE) {
            Some(file) => read_token(&PathBuf::from(file)),
            None => Err(format!(
                "who asks? --secret-file FILE, or {SECRET_FILE} or {SECRET} in the environment"
            )
            .into()),
        }
    }
}

/// What goes into a request must be a name.
fn named(what: &str, text: &str) -> Result<(), Failure> {
    seats::name(text).map_err(|bound| format!("{what}: {bound}, not {text:?}").into())
}

fn variable(name: &str) -> Option<String> {
    let found = environment::variables().into_iter().find(|one| one.name == name);
    found.map(|one| one.value).filter(|value| !value.is_empty())
}

fn run_apply(options: &Apply, out: &mut dyn Write) -> Result<(), Failure> {
    let file = file::read(&options.file, options.seats.as_deref())?;
    let mut teller = options.server.teller()?;
    if options.dry_run {
        let plan = block_on(compare(&mut teller, &file))??;
        print(options, &file, &plan, false, out)?;
        return match (&plan.refusals[..], plan.is_empty()) {
            ([], true) => Ok(()),
            ([], false) => Err(Differs.into()),
            (refusals, _) => Err(format!("{} of it cannot be done", refusals.len()).into()),
        };
    }
    let mut shown = None;
    let mut failed = Ok(());
    let applied = block_on(apply(&mut teller, &file, &mut |plan| {
        if !options.json {
            failed = print(options, &file, plan, false, out);
        }
        shown = Some(plan.clone());
    }))?;
    failed?;
    let is_new = shown.as_ref().is_some_and(|plan| !plan.is_empty());
    if options.json {
        if let Some(plan) = &shown {
            print(options, &file, plan, applied.is_ok() && is_new, out)?;
        }
    } else if applied.is_ok() && is_new {
        writeln!(
            out,
            "applied: the server has sale {} as {} says",
            file.sale,
            options.file.display()
        )?;
    }
    Ok(applied?)
}

fn print(
    options: &Apply,
    file: &SaleFile,
    plan: &Plan,
    applied: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if options.json {
        let mut value = as_value(plan);
        value.insert("sale", json!(file.sale));
        value.insert("applied", json!(applied));
        return Ok(writeln!(out, "{}", serde_json::to_string(&value)?)?);
    }
    show::plan(plan, out)?;
    if plan.is_empty() {
        let (sale, path) = (&file.sale, options.file.display());
        writeln!(out, "nothing to do: the server has sale {sale} as {path} says")?;
    }
    Ok(())
}

fn run_show(options: &Named, out: &mut dyn Write) -> Result<(), Failure> {
    named("SALE", &options.sale)?;
    let mut teller = options.server.teller()?;
    let path = sale_path(&options.sale);
    let (mut sale, items) = block_on(async {
        let sale = teller.get(&path).await?;
        let items = teller.get(&format!("{path}/items")).await?;
        Ok::<_, Failure>((sale, items["items"].clone()))
    })??;
    if options.json {
        sale["items"] = items;
        writeln!(out, "{sale}")?;
    } else {
        show::sale(&sale, items.as_array().map_or(&[], Vec::as_slice), out)?;
    }
    Ok(())
}

fn step(options: &Named, step: &str, out: &mut dyn Write) -> Result<(), Failure> {
    named("SALE", &options.sale)?;
    let mut teller = options.server.teller()?;
    let path = format!("{}/{step}", sale_path(&options.sale));
    let call = Call { method: "POST", path: &path, ..Call::default() };
    let sale: Value = block_on(teller.ask(call))??.value;
    if options.json {
        writeln!(out, "{sale}")?;
    } else {
        let state = sale["state"].as_str().unwrap_or("?");
        let opens = sale["opens_at"].as_str().filter(|_| state == "scheduled");
        let opens = opens.map(|at| format!(", and opens at {at}")).unwrap_or_default();
        writeln!(out, "sale {} is {state}{opens}", options.sale)?;
    }
    Ok(())
}
