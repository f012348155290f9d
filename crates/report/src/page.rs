//! The page as its template wants it.

use askama::Template;
use windlass_object::age::until;

use crate::{report::ClusterReport, time_line::TimeMark};

/// The page. Texts are escaped: names and messages may be anybody's.
#[derive(Template)]
#[template(path = "report.html")]
pub(crate) struct ReportPage<'a> {
    report: &'a ClusterReport,
    marks: Vec<TimeMark>,
    /// Where now is on the time line, in percent.
    now: f64,
    at: String,
}

// === impl ReportPage ===

impl<'a> ReportPage<'a> {
    pub(crate) fn new(report: &'a ClusterReport) -> Self {
        Self {
            report,
            marks: report.line.marks(),
            now: report.line.place(report.at),
            at: report.at.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        }
    }

    /// What the page is about in a few words, for the title of its tab.
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
