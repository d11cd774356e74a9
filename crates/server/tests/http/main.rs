//! The server over a real socket, on a real store.
//!
//! One file for each area; the one way in is [`served::Served`].

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod abuse;
mod controls;
mod cut_off;
mod dead_letters;
mod definitions;
mod description;
mod doctor;
mod keys;
mod limits;
mod lists;
mod operations;
mod problems;
mod purge;
mod recover;
mod served;
mod starts;
mod streams;
mod tasks;
mod why;
