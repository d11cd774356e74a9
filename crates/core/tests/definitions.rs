//! What people see: every broken file under `broken/` with all that is said about it, and the files under `whole/` that are right.

use steadfast_core::definition::{check_references, read};

/// Everything that is said about a file, as it is printed.
fn told(file: &str, text: &str) -> String {
    let mut reads = [read(file, text)];
    // The other files are not about references: for them everything is stored already.
    check_references(&mut reads, &|_, _| file != "unknown_reference.yaml");
    reads[0].problems.iter().map(|problem| format!("{problem}\n\n")).collect()
}

macro_rules! broken {
    ($($name:ident: $file:literal,)*) => {
        $(
            #[test]
            fn $name() {
                insta::assert_snapshot!(stringify!($name), told($file, include_str!(concat!("broken/", $file))));
            }
        )*
    };
}

broken! {
    unknown_field: "unknown_field.yaml",
    unknown_node: "unknown_node.yaml",
    unreachable_node: "unreachable_node.yaml",
    join_on_a_group_nobody_opens: "join_on_a_group_nobody_opens.yaml",
    join_outside_its_group: "join_outside_its_group.yaml",
    bad_expression: "bad_expression.yaml",
    bad_schema: "bad_schema.yaml",
    many_problems: "many_problems.yaml",
    bad_duration: "bad_duration.yaml",
    two_works_in_one_node: "two_works_in_one_node.yaml",
    missing_kind: "missing_kind.yaml",
    unknown_kind: "unknown_kind.yaml",
    duplicate_key: "duplicate_key.yaml",
    tab_indentation: "tab_indentation.yaml",
    bad_output_path: "bad_output_path.yaml",
    wrong_types: "wrong_types.yaml",
    not_available: "not_available.yaml",
    secret_in_the_wrong_place: "secret_in_the_wrong_place.yaml",
    bad_foreach: "bad_foreach.yaml",
    disagreeing_joins: "disagreeing_joins.yaml",
    unknown_reference: "unknown_reference.yaml",
    unclosed_expression: "unclosed_expression.yaml",
    join_with_foreach: "join_with_foreach.yaml",
    no_start: "no_start.yaml",
    lost_writes: "lost_writes.yaml",
    merge_mistakes: "merge_mistakes.yaml",
    executor_mistakes: "executor_mistakes.yaml",
    not_yaml: "not_yaml.yaml",
    json: "broken.json",
    expression_and_unreachable: "expression_and_unreachable.yaml",
    retry_and_join: "retry_and_join.yaml",
    unknown_ends: "unknown_ends.yaml",
    two_documents: "two_documents.yaml",
    nothing: "nothing.yaml",
}

#[test]
fn the_documented_example_has_no_problem() {
    assert_eq!(told("research.yaml", include_str!("whole/research.yaml")), "");
}
