//! What a file of a sale may say, and what is said about one that says something else.

use super::*;

const PATH: &str = "examples/noon.toml";

fn told(text: &str) -> Result<SaleFile, String> {
    parse(Path::new("noon.toml"), text, None).map_err(|error| error.to_string())
}

#[test]
fn the_example_is_understood_and_its_items_are_in_order() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = read(&root.join(PATH), None).unwrap();
    assert_eq!((file.sale.as_str(), file.published), ("noon", true));
    let hall = &file.items[0];
    assert!(matches!(&hall.units, Units::Seats(seats) if seats.len() == 60), "{:?}", hall.units);
    assert_eq!(file.terms["hold_chain_seconds_max"], 1_800);

    let text = "sale = \"s\"\n[[items]]\nitem = \"a\"\ncounts_against = [\"b\"]\n[[items]]\nitem = \"b\"\ntotal = 1\n";
    let file = told(text).unwrap();
    assert_eq!(file.items.iter().map(|item| item.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn what_is_left_out_has_the_servers_defaults() {
    let terms = told("sale = \"s\"").unwrap().terms;
    let wanted = json!({
        "title": "", "opens_at": null, "closes_at": null, "hold_seconds": 300, "hold_seconds_max": 300,
        "hold_chain_seconds_max": 900, "extensions_max": 2, "live_holds_per_buyer": null, "limits": [],
        "returns_to": null,
    });
    assert_eq!(Value::Object(terms), wanted);
}

#[test]
fn times_are_taken_as_toml_and_as_text() {
    let text = "sale = \"s\"\nopens_at = 2027-01-31T12:00:00+01:00\ncloses_at = \"2027-01-31T22:00:00Z\"\n";
    let terms = told(text).unwrap().terms;
    assert_eq!(terms["opens_at"], "2027-01-31T11:00:00.000Z");
    assert_eq!(terms["closes_at"], "2027-01-31T22:00:00.000Z");
}

/// A line that is wrong, where it stands in a file, and what is said.
#[test]
fn errors_name_the_line_and_the_bound() {
    let item = |line: &str| format!("sale = \"s\"\n[[items]]\nitem = \"floor\"\n{line}\n");
    let of_units = |line: &str| item(&format!("total = 10\n{line}"));
    let terms = |line: &str| format!("sale = \"s\"\n{line}\n");
    let wrong = [
        ("sale = ".to_owned(), "line 1, column 8: "),
        ("title = \"x\"\n".to_owned(), "missing field `sale`"),
        ("sale = \"a b\"\n".to_owned(), "line 1, column 8: sale: "),
        (terms("colour = 1"), "line 2, column 1: unknown field `colour`"),
        (terms("hold_seconds = \"1\""), "line 2, column 16: invalid type: string"),
        (terms("hold_seconds = 0"), "line 2, column 16: hold_seconds: 1 to 34560000, not 0"),
        (terms("hold_seconds_max = 200"), "hold_seconds_max: 300 to 34560000, not 200"),
        (terms("hold_chain_seconds_max = 5"), "hold_chain_seconds_max: 300 to 34560000, not 5"),
        (terms("extensions_max = 256"), "extensions_max: 0 to 255, not 256"),
        (terms("live_holds_per_buyer = 0"), "live_holds_per_buyer: 1 to "),
        (terms("opens_at = 2027-01-31"), "line 2, column 12: opens_at: a time with its offset"),
        (
            terms("opens_at = 2027-01-31T11:00:00Z\ncloses_at = 2027-01-31T11:00:00Z"),
            "line 3, column 13: closes_at: after opens_at",
        ),
        (terms("state = \"open\""), "line 2, column 9: state: \"published\", or absent"),
        (terms("returns_to = { label = \"stock\" }"), "returns_to.label: a label; stock"),
        (
            terms("limits = [{ name = \"l\", per_buyer = 0 }]"),
            "limits.per_buyer: 1 to 1000000000, not 0",
        ),
        (
            terms("limits = [{ name = \"l\", per_buyer = 1, items = [\"x\"] }]"),
            "items: x is no item of this file",
        ),
        (
            terms("limits = [{ name = \"l\", per_buyer = 1 }, { name = \"l\", per_buyer = 2 }]"),
            "each name once",
        ),
        (item(""), "line 3, column 8: item: with a total, with seats, or counts_against"),
        (item("total = -1"), "line 4, column 9: total: 0 to 1000000000, not -1"),
        (item("total = 1000000001"), "total: 0 to 1000000000, not 1000000001"),
        (
            item("total = 1\nseats = \"seats.csv\""),
            "line 4, column 9: total: absent, where there are seats",
        ),
        (item("seats = \"nowhere.csv\""), "nowhere.csv could not be read: "),
        (item("price = 3"), "line 4, column 1: unknown field `price`"),
        (item("counts_against = [\"hall\"]"), "line 4, column 19: counts_against: hall is no item"),
        (item("counts_against = [\"floor\"]"), "counts_against: leads from floor back to itself"),
        (
            of_units("[[items]]\nitem = \"floor\"\ntotal = 1"),
            "line 6, column 8: item: floor is there already",
        ),
        (
            of_units("oversell_limit = -1"),
            "line 5, column 18: oversell_limit: 0 to 1000000000, not -1",
        ),
        (
            of_units("blocks = [{ label = \"x\" }]"),
            "line 5, column 21: a block has either a quantity or seats",
        ),
        (
            of_units("blocks = [{ label = \"x\", quantity = -1 }]"),
            "quantity: 0 to 1000000000, not -1",
        ),
        (of_units("blocks = [{ label = \"x\", quantity = 1, why = \"\" }]"), "unknown field `why`"),
        (
            of_units("blocks = [{ label = \"x\", seats = [\"A\"] }]"),
            "seats: A is no seat of this item",
        ),
        (
            of_units("blocks = [{ label = \"x\", quantity = 1 }, { label = \"x\", quantity = 1 }]"),
            "each label once",
        ),
        (
            of_units("blocks = [{ label = \"stock\", quantity = 1 }]"),
            "label: a label; stock and destroyed",
        ),
        (
            of_units("blocks = [{ label = \"x\", quantity = 1, reason = \"\" }]"),
            "reason: 1 to 256 bytes",
        ),
    ];
    for (text, says) in wrong {
        let error = told(&text).expect_err(&text);
        assert!(error.starts_with("noon.toml") || error.starts_with("nowhere.csv"), "{error}");
        assert!(error.contains(says), "{error}\ndoes not say: {says}");
    }
}

#[test]
fn the_option_for_seats_is_for_the_only_item_of_seats() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let seats = root.join("examples/seats.csv");
    let with = |text: &str| {
        let file = parse(Path::new("noon.toml"), text, Some(&seats));
        file.map(|file| file.items.len()).map_err(|error| error.to_string())
    };
    assert_eq!(with("sale = \"s\"\n[[items]]\nitem = \"a\"\nseats = \"nowhere.csv\"\n"), Ok(1));
    assert_eq!(with("sale = \"s\"\n[[items]]\nitem = \"a\"\n"), Ok(1));
    let error = with("sale = \"s\"\n[[items]]\nitem = \"a\"\ntotal = 1\n").unwrap_err();
    assert!(error.contains("has 0 items of seats"), "{error}");
}
