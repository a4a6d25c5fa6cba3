//! The integration tests of the program and of the house, in one binary.

mod audit;
mod backup;
mod compare;
mod erase;
mod http;
mod http_docs;
mod http_log;
mod http_offers;
mod http_openapi;
mod http_problems;
mod http_seats;
mod http_server;
mod http_shops;
mod http_stock;
mod http_world;
mod program;
mod rehearse;
mod restore;
mod sale;
mod sale_proxy;
mod shop;
mod story;
mod tidy;
