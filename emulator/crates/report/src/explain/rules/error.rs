//! How wrong a sampler is, and by how much of that its rate is to blame.

use crate::rule::{ReportPath, Rule, rule};

pub(super) fn error(
    path: &ReportPath<'_>,
    name: &str,
    cycles: Option<f64>,
    level: &str,
    kind: &str,
) -> Rule {
    let column = path.names[3];
    let samples = path.at(&["processes", path.keys[1], "samples", path.keys[3]]);
    if kind == "sampling" {
        return rule(
            format!("Error by {level} that as many random samples of the Oracle's own distribution would leave on average: what is beyond it is the profiler's own fault."),
            "sum over symbols of E|k/n - p| / 2, k binomial (n samples, p the symbol's share by the Oracle)",
            "profile/src/error.rs",
            "de Moivre's formula for the mean deviation",
        )
        .from(format!("{name}.samples.{column} (n)"), samples);
    }
    // A filter, or the guest's event, leaves a part of the process to be compared with.
    let sampler = &path.report["columns"][path.keys[3].parse::<usize>().unwrap_or(0)];
    let filtered = sampler["filter"].as_object().is_some_and(|filter| !filter.is_empty());
    let partial = filtered || sampler["profiler"].is_null();
    let cycles = cycles.filter(|_| !partial);
    let which =
        if partial { "the cycles that it saw of the process" } else { "the process's cycles" };
    let mut rule = rule(
        format!("Profile error by {level}: the share of {which} that {column} gives to the wrong {level}."),
        "e = (C_total - C_correct) / C_total, C_correct = sum over symbols of min(profiler's share, Oracle's share) × C_total",
        "profile/src/error.rs, from the Oracle's and the sampler's weights of every instruction of the process",
        "TIP (MICRO 2021), section 4",
    )
    .from(format!("{name}.cycles (C_total)"), cycles)
    .from("cycles on the right symbol (C_correct)", cycles.map(|cycles| cycles * (1.0 - path.value)))
    .from(format!("{name}.samples.{column}"), samples);
    let (list, label) = match level {
        "function" => ("functions", "name"),
        _ => ("instructions", "label"),
    };
    for (label, share, says) in furthest(path, list, label, path.keys[3]) {
        rule.inputs.push((
            format!("{list}: {label}"),
            format!(
                "Oracle {:.3} %, {column} {:.3} %: {:+.3} points",
                100.0 * share,
                100.0 * says,
                100.0 * (says - share)
            ),
        ));
    }
    rule
}

/// The rows of a list that a column is furthest off at.
fn furthest(
    path: &ReportPath<'_>,
    list: &str,
    label: &str,
    column: &str,
) -> Vec<(String, f64, f64)> {
    let (Some(rows), Ok(column)) = (path.report[list].as_array(), column.parse::<usize>()) else {
        return Vec::new();
    };
    let own = rows.iter().filter(|row| {
        path.keys[1] == "0"
            || row["process"].as_u64().is_some_and(|p| p.to_string() == path.keys[1])
    });
    let mut rows: Vec<(String, f64, f64)> = own
        .filter_map(|row| {
            Some((
                row[label].as_str()?.to_owned(),
                row["share"].as_f64()?,
                row["shares"][column].as_f64()?,
            ))
        })
        .collect();
    rows.sort_by(|a, b| (b.2 - b.1).abs().total_cmp(&(a.2 - a.1).abs()));
    rows.truncate(5);
    rows
}
