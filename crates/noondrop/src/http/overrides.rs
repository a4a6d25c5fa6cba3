//! `override` and `reason` of a new hold: what the box office wants passed over.

use std::collections::BTreeSet;

use noondrop_core::{Override, Overriding};

use super::body;
use super::problem::Problem;

/// What the box office wants passed over, and why; a set, so that the order does not matter.
pub fn overriding(
    codes: Option<&[String]>,
    reason: Option<&str>,
) -> Result<Option<Box<Overriding>>, Problem> {
    let Some(codes) = codes else {
        let lone = |_| Err(Problem::field("reason", "absent, where there is no override"));
        return reason.map_or(Ok(None), lone);
    };
    let known = || Override::ALL.map(Override::as_str).join(", ");
    let parse = |(place, code): (usize, &String)| {
        let field = format!("override[{place}]");
        Override::parse(code).ok_or_else(|| Problem::field(&field, &format!("one of {}", known())))
    };
    let codes = codes.iter().enumerate().map(parse).collect::<Result<BTreeSet<_>, _>>()?;
    if codes.is_empty() {
        return Err(Problem::field("override", "at least one code, or absent"));
    }
    let reason = body::text("reason", reason.unwrap_or_default())?;
    Ok(Some(Box::new(Overriding { codes: codes.into_iter().collect(), reason })))
}
