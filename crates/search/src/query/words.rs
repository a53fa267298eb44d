//! Searches for words, ranked by BM25.

use pintle_ranked::{Ranked, WordsPart, best_line, rank, term_weights};
use pintle_root::Root;

use super::{Filter, Page, hit::ResultBudget, ranked};
use crate::snapshot::{SearchError, Snapshot};

/// A page of the files that contain some of the words, best first, each with its best line. Returns `None` if the
/// words are not built yet.
pub(crate) fn find_words(
    root: &Root,
    snapshot: &Snapshot,
    query: &str,
    filter: &Filter<'_>,
    request: &ranked::PageRequest,
    has_ended: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Page>, SearchError> {
    let overlay = snapshot.overlay.ranked(root, has_ended)?;
    let sources = ranked::sources(snapshot, overlay, filter);
    let words = sources.iter().map(|part| part.words().transpose());
    let Some(words) = words.collect::<Option<Result<Vec<_>, _>>>().transpose()? else { return Ok(None) };
    let allowed = sources.iter().map(ranked::RankedSource::allowed).collect::<Vec<_>>();
    let parts_of_words = words
        .iter()
        .zip(&allowed)
        .map(|(words, allowed)| WordsPart { words: *words, allowed: allowed.as_deref() })
        .collect::<Vec<_>>();
    // All matching files are ranked, so that files of equal score come in the order of their paths, whichever segment
    // they are in.
    let (found, total) = rank(&parts_of_words, query, usize::MAX, has_ended);
    if has_ended() {
        return Err(SearchError::Cancelled);
    }
    let mut found = found;
    found.sort_by(|one, other| {
        let path = |ranked: &Ranked| sources[ranked.part].path(ranked.file).unwrap_or_default();
        other.score.total_cmp(&one.score).then_with(|| path(one).cmp(path(other)))
    });
    found.truncate(request.end());
    let weights = term_weights(&parts_of_words, query);
    let has_more = total > request.end() as u64;
    let mut page = Page { total, is_total_exact: true, has_more, ..Page::default() };
    let mut budget = ResultBudget::new(request.most_bytes);
    for ranked in found.into_iter().skip(request.start) {
        let path = sources[ranked.part].path(ranked.file)?;
        let Some(text) = ranked::read(root, path) else { continue };
        let Some(line) = best_line(&text.bytes, query, Some(&weights)) else { continue };
        let mut hit = text.hit(path, line.line.into(), line.column.into(), request.around);
        hit.score = Some(ranked.score);
        budget.charge(&hit)?;
        page.hits.push(hit);
    }
    page.next = page.has_more.then(|| request.next());
    Ok(Some(page))
}
