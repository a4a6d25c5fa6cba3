//! The integration tests of the program and of the house, in one binary.

mod tidy;
