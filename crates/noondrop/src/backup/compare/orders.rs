//! A file of orders: comma-separated, with a header line that names the columns.
//!
//! `payment_ref` must be there; `hold` and `reference` help to say what became of an order. Other columns are passed
//! over, so that an export of the shop can be used as it is.

use std::error::Error;
use std::fmt;
use std::io::Read;

use csv::StringRecord;
use noondrop_core::HoldId;

/// One order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its line in the file.
    pub line: u64,
    /// Its payment, as the shop confirmed with it; none: not paid.
    pub payment_ref: Option<String>,
    /// Its hold, if the file says.
    pub hold: Option<HoldId>,
    /// Its cart or order number, if the file says.
    pub reference: Option<String>,
}

/// Why a file of orders was not understood.
#[derive(Debug)]
pub enum OrdersError {
    /// It could not be read, or its lines differ in their number of columns.
    Csv(csv::Error),
    /// A column that is needed is not there, or is there twice.
    Column {
        /// Which.
        name: &'static str,
        /// The columns that there are.
        found: String,
    },
    /// What stands in the column `hold` is no id of a hold.
    Hold {
        /// In which line.
        line: u64,
        /// What stands there.
        text: String,
    },
}

impl fmt::Display for OrdersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Csv(_) => f.write_str("could not read the orders"),
            Self::Column { name, found } => write!(
                f,
                "the first line must name the column {name} once, and perhaps hold and reference; it has: {found}"
            ),
            Self::Hold { line, text } => write!(f, "line {line}: {text:?} is no id of a hold"),
        }
    }
}

impl Error for OrdersError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Csv(cause) => Some(cause),
            Self::Column { .. } | Self::Hold { .. } => None,
        }
    }
}

impl From<csv::Error> for OrdersError {
    fn from(error: csv::Error) -> Self {
        Self::Csv(error)
    }
}

/// Reads a file of orders.
pub fn read(file: impl Read) -> Result<Vec<Order>, OrdersError> {
    let mut lines = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(file);
    let columns = Columns::of(lines.headers()?)?;
    let mut orders = Vec::new();
    for record in lines.records() {
        orders.push(columns.order(&record?)?);
    }
    Ok(orders)
}

struct Columns {
    payment_ref: usize,
    hold: Option<usize>,
    reference: Option<usize>,
}

impl Columns {
    fn of(header: &StringRecord) -> Result<Self, OrdersError> {
        let place = |name: &'static str| {
            // Spreadsheets put a mark before the first name.
            let is_it =
                |found: &str| found.trim_start_matches('\u{feff}').eq_ignore_ascii_case(name);
            let mut places = header.iter().enumerate().filter(|(_, found)| is_it(found));
            match (places.next(), places.next()) {
                (place, None) => Ok(place.map(|(place, _)| place)),
                (_, Some(_)) => Err(missing(name, header)),
            }
        };
        let payment_ref = place("payment_ref")?.ok_or_else(|| missing("payment_ref", header))?;
        Ok(Self { payment_ref, hold: place("hold")?, reference: place("reference")? })
    }

    fn order(&self, record: &StringRecord) -> Result<Order, OrdersError> {
        let line = record.position().map_or(0, csv::Position::line);
        let text = |place: usize| record.get(place).filter(|text| !text.is_empty());
        let hold = self.hold.and_then(text).map(|text| {
            text.parse().map_err(|_| OrdersError::Hold { line, text: text.to_owned() })
        });
        Ok(Order {
            line,
            payment_ref: text(self.payment_ref).map(str::to_owned),
            hold: hold.transpose()?,
            reference: self.reference.and_then(text).map(str::to_owned),
        })
    }
}

fn missing(name: &'static str, header: &StringRecord) -> OrdersError {
    OrdersError::Column { name, found: header.iter().collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_and_others_passed_over() {
        let text = "\u{feff}Order,PAYMENT_REF, reference\n1,\"pay,1\",cart-1\n2,,cart-2\n";
        let orders = read(text.as_bytes()).unwrap();
        assert_eq!(orders.len(), 2);
        assert_eq!(orders[0].payment_ref.as_deref(), Some("pay,1"));
        assert_eq!((orders[0].line, orders[1].line), (2, 3));
        assert_eq!(orders[1].payment_ref, None);
        assert_eq!(orders[1].reference.as_deref(), Some("cart-2"));
    }

    #[test]
    fn a_file_that_is_not_understood_says_where() {
        let wrong = [
            ("", "payment_ref"),
            ("pay-1,order-1\npay-2,order-2\n", "it has: pay-1, order-1"),
            ("payment_ref,payment_ref\na,b\n", "once"),
            ("payment_ref,hold\na,seven\n", "line 2: \"seven\""),
            ("payment_ref,hold\na\n", "could not read"),
        ];
        for (text, words) in wrong {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}
