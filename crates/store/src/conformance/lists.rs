//! The list of runs, how many there are, and the histories of all of them in the order of commits.

use steadfast_core::ids::{ActorId, Sequence};
use steadfast_core::time::Timestamp;

use super::{Case, Place, actor, cases, event, reader, write};
use crate::batch::{Batch, ListingChange};
use crate::rows::{HistoryPlace, RunFilter, RunRow};
use crate::{Reader, Store};

pub(super) const CASES: &[Case] = cases![
    runs_are_listed_the_newest_first,
    a_list_holds_those_that_fit,
    a_page_is_the_same_while_runs_are_added_and_end,
    a_run_that_is_listed_again_keeps_its_place,
    runs_are_counted_by_workflow_and_status,
    changes_of_one_batch_are_one_change,
    the_whole_history_is_read_in_the_order_of_commits,
    the_history_of_a_tree_holds_all_of_its_runs_and_no_others,
    lists_survive_the_end_of_a_store,
];

fn run(name: &str, number: u64, workflow: &str, status: &str) -> RunRow {
    RunRow {
        actor: actor(&format!("run:{name}")),
        number: Sequence(number),
        workflow: workflow.into(),
        version: 3,
        status: status.into(),
        parent: None,
        root: name.into(),
        started_at: Timestamp(1_000 + number),
        ended_at: None,
    }
}

fn child(name: &str, number: u64, parent: &str, root: &str) -> RunRow {
    RunRow { parent: Some(parent.into()), root: root.into(), ..run(name, number, "child", "running") }
}

fn list(store: &dyn Store, row: RunRow, was: Option<&str>) {
    let actor = row.actor.clone();
    write(store, &actor, |writes| writes.list(ListingChange { row, was: was.map(Into::into) }));
}

fn names(reader: &dyn Reader, filter: RunFilter<'_>, before: Option<u64>, limit: usize) -> Vec<String> {
    let found = reader.runs(filter, before.map(Sequence), limit).unwrap();
    found.into_iter().map(|row| row.actor.name().to_owned()).collect()
}

fn counts(reader: &dyn Reader) -> Vec<String> {
    let counts = reader.run_counts().unwrap();
    counts.into_iter().map(|found| format!("{} {} {}", found.workflow, found.status, found.count)).collect()
}

fn runs_are_listed_the_newest_first(place: &dyn Place) {
    let store = place.open();
    for number in 1..=5 {
        list(&*store, run(&format!("r{number}"), number, "w", "running"), None);
    }
    let reader = reader(&*store);
    let all = RunFilter::default();
    assert_eq!(names(&*reader, all, None, 10), ["r5", "r4", "r3", "r2", "r1"]);
    assert_eq!(names(&*reader, all, None, 2), ["r5", "r4"]);
    assert_eq!(names(&*reader, all, Some(4), 2), ["r3", "r2"]);
    assert_eq!(names(&*reader, all, Some(1), 2), [] as [&str; 0]);
    assert_eq!(names(&*reader, all, None, 0), [] as [&str; 0]);
    assert_eq!(reader.runs(all, Some(Sequence(2)), 1).unwrap(), [run("r1", 1, "w", "running")]);
}

fn a_list_holds_those_that_fit(place: &dyn Place) {
    let store = place.open();
    list(&*store, run("a", 1, "w", "running"), None);
    list(&*store, run("b", 2, "v", "running"), None);
    list(&*store, run("c", 3, "w", "failed"), None);
    list(&*store, child("a1", 4, "a", "a"), None);
    list(&*store, child("a2", 5, "a1", "a"), None);
    list(&*store, run("d", 6, "w", "completed"), None);
    let reader = reader(&*store);
    let named = |filter: RunFilter<'_>| names(&*reader, filter, None, 10);
    let all = RunFilter::default();
    assert_eq!(named(RunFilter { workflow: Some("w"), ..all }), ["d", "c", "a"]);
    assert_eq!(named(RunFilter { status: Some("running"), ..all }), ["a2", "a1", "b", "a"]);
    assert_eq!(named(RunFilter { workflow: Some("w"), status: Some("failed"), ..all }), ["c"]);
    assert_eq!(named(RunFilter { root: Some("a"), ..all }), ["a2", "a1"]);
    assert_eq!(named(RunFilter { parent: Some("a"), ..all }), ["a1"]);
    assert_eq!(named(RunFilter { parent: Some("a1"), root: Some("a"), ..all }), ["a2"]);
    assert_eq!(named(RunFilter { parent: Some("a1"), root: Some("b"), ..all }), [] as [&str; 0]);
    assert_eq!(named(RunFilter { root: Some("a"), workflow: Some("w"), ..all }), [] as [&str; 0]);
    assert_eq!(named(RunFilter { root: Some("a"), status: Some("running"), ..all }), ["a2", "a1"]);
    assert_eq!(named(RunFilter { workflow: Some("nobody"), ..all }), [] as [&str; 0]);
    assert_eq!(names(&*reader, RunFilter { workflow: Some("w"), ..all }, Some(6), 1), ["c"]);
}

fn a_page_is_the_same_while_runs_are_added_and_end(place: &dyn Place) {
    let store = place.open();
    for number in 1..=4 {
        list(&*store, run(&format!("r{number}"), number, "w", "running"), None);
    }
    let all = RunFilter { workflow: Some("w"), ..RunFilter::default() };
    assert_eq!(names(&*reader(&*store), all, None, 2), ["r4", "r3"]);
    list(&*store, run("r5", 5, "w", "running"), None);
    list(&*store, run("r2", 99, "w", "completed"), Some("running"));
    assert_eq!(names(&*reader(&*store), all, Some(3), 2), ["r2", "r1"]);
}

fn a_run_that_is_listed_again_keeps_its_place(place: &dyn Place) {
    let store = place.open();
    list(&*store, run("a", 1, "w", "running"), None);
    list(&*store, run("b", 2, "w", "running"), None);
    let ended = RunRow { ended_at: Some(Timestamp(9)), ..run("a", 7, "w", "completed") };
    list(&*store, ended.clone(), Some("running"));
    let found = reader(&*store).runs(RunFilter::default(), None, 10).unwrap();
    assert_eq!(
        found,
        [run("b", 2, "w", "running"), RunRow { number: Sequence(1), started_at: Timestamp(1_001), ..ended }]
    );
}

fn runs_are_counted_by_workflow_and_status(place: &dyn Place) {
    let store = place.open();
    assert_eq!(counts(&*reader(&*store)), [] as [&str; 0]);
    list(&*store, run("a", 1, "w", "running"), None);
    list(&*store, run("b", 2, "w", "running"), None);
    list(&*store, run("c", 3, "v", "running"), None);
    assert_eq!(counts(&*reader(&*store)), ["v running 1", "w running 2"]);
    list(&*store, run("a", 1, "w", "failed"), Some("running"));
    list(&*store, run("c", 3, "v", "paused"), Some("running"));
    assert_eq!(counts(&*reader(&*store)), ["v paused 1", "w failed 1", "w running 1"]);
}

fn changes_of_one_batch_are_one_change(place: &dyn Place) {
    let store = place.open();
    write(&*store, &actor("run:a"), |writes| {
        writes.list(ListingChange { row: run("a", 1, "w", "running"), was: None });
        writes.list(ListingChange { row: run("a", 2, "w", "completed"), was: Some("running".into()) });
    });
    let reader = reader(&*store);
    assert_eq!(counts(&*reader), ["w completed 1"]);
    let row = RunRow { started_at: Timestamp(1_002), ..run("a", 1, "w", "completed") };
    assert_eq!(reader.runs(RunFilter::default(), None, 10).unwrap(), [row]);
}

/// Events of a history, added by one commit.
fn add(store: &dyn Store, actor: &ActorId, events: std::ops::RangeInclusive<u64>, root: Option<&str>) {
    write(store, actor, |writes| {
        writes.events = events.map(|number| event(actor, number)).collect();
        writes.root = root.map(Into::into);
    });
}

/// What is read from the beginning, in pages.
fn told(reader: &dyn Reader, root: Option<&str>, page: usize) -> Vec<String> {
    let (mut after, mut told) = (HistoryPlace::default(), Vec::new());
    loop {
        let events = reader.history(root, after, page).unwrap();
        assert!(events.len() <= page);
        let Some((last, _)) = events.last() else { return told };
        after = *last;
        told.extend(events.iter().map(|(_, event)| format!("{} {}", event.actor.name(), event.sequence)));
    }
}

fn the_whole_history_is_read_in_the_order_of_commits(place: &dyn Place) {
    let store = place.open();
    let (a, b) = (actor("run:a"), actor("run:b"));
    add(&*store, &b, 1..=3, None);
    add(&*store, &a, 1..=1, None);
    add(&*store, &b, 4..=4, None);
    let reader = reader(&*store);
    for page in [1, 2, 100] {
        assert_eq!(told(&*reader, None, page), ["b 1", "b 2", "b 3", "a 1", "b 4"]);
    }
    let first = reader.history(None, HistoryPlace::default(), 2).unwrap()[1].0;
    add(&*store, &a, 2..=2, None);
    let rest = reader.history(None, first, 100).unwrap();
    assert_eq!(rest.last().map(|(_, event)| event.clone()), Some(event(&a, 2)));
    assert_eq!(rest.len(), 4);
}

fn the_history_of_a_tree_holds_all_of_its_runs_and_no_others(place: &dyn Place) {
    let store = place.open();
    let (top, inner, other) = (actor("run:top"), actor("run:inner"), actor("run:other"));
    add(&*store, &top, 1..=2, Some("top"));
    add(&*store, &inner, 1..=2, Some("top"));
    add(&*store, &other, 1..=2, Some("other"));
    add(&*store, &top, 3..=3, Some("top"));
    add(&*store, &inner, 3..=3, Some("top"));
    let reader = reader(&*store);
    for page in [1, 3, 100] {
        assert_eq!(told(&*reader, Some("top"), page), ["top 1", "top 2", "inner 1", "inner 2", "top 3", "inner 3"]);
    }
    assert_eq!(told(&*reader, Some("other"), 10), ["other 1", "other 2"]);
    assert_eq!(told(&*reader, Some("nobody"), 10), [] as [&str; 0]);
}

fn lists_survive_the_end_of_a_store(place: &dyn Place) {
    let store = place.open();
    list(&*store, run("a", 1, "w", "running"), None);
    add(&*store, &actor("run:a"), 1..=1, None);
    // A batch that is refused changes no count.
    let mut batch = Batch::default();
    let writes = batch.of(&actor("run:a"));
    writes.events = vec![event(&actor("run:a"), 1)];
    writes.list(ListingChange { row: run("a", 1, "w", "failed"), was: Some("running".into()) });
    assert!(store.commit(&batch).is_err());
    drop(store);
    let store = place.open();
    let reader = reader(&*store);
    assert_eq!(counts(&*reader), ["w running 1"]);
    assert_eq!(names(&*reader, RunFilter::default(), None, 10), ["a"]);
    assert_eq!(told(&*reader, None, 10), ["a 1"]);
}
