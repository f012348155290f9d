//! The data of the page template.

use askama::Template;
use windlass_object::age::until;

use crate::{report::ClusterReport, time_line::TimeMark};

/// The page. The template escapes all text, because names and messages may come from anyone.
#[derive(Template)]
#[template(path = "report.html")]
pub(crate) struct ReportPage<'a> {
    report: &'a ClusterReport,
    marks: Vec<TimeMark>,
    /// The position of the present time on the time line, in percent.
    now: f64,
    at: String,
}

impl<'a> ReportPage<'a> {
    pub(crate) fn new(report: &'a ClusterReport) -> Self {
        Self {
            report,
            marks: report.line.marks(),
            now: report.line.position(report.at),
            at: report.at.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        }
    }

    /// Returns a short summary for the page title.
    fn verdict(&self) -> String {
        match self.report.problems.len() {
            0 => "nothing is wrong".to_owned(),
            1 => "1 problem".to_owned(),
            number => format!("{number} problems"),
        }
    }

    fn until(&self, moment: &jiff::Timestamp) -> String {
        until(*moment, self.report.at)
    }
}
