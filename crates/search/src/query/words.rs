//! Ranked words.

use pintle_ranked::{Ranked, WordsPart, best_line, rank, term_weights};
use pintle_root::Root;

use super::{Filter, Page, hit::Room, ranked};
use crate::live::{Snapshot, Unready};

/// A page of the files that have some of the words, best first, each with its best line. Nothing if the words are not
/// built yet.
pub(crate) fn find_words(
    root: &Root,
    snapshot: &Snapshot,
    query: &str,
    filter: &Filter<'_>,
    slice: &ranked::Slice,
    has_ended: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Page>, Unready> {
    let fresh = snapshot.overlay.ranked(root, has_ended)?;
    let parts = ranked::parts(snapshot, fresh, filter);
    let words = parts.iter().map(|part| part.words().transpose());
    let Some(words) = words.collect::<Option<Result<Vec<_>, _>>>().transpose()? else { return Ok(None) };
    let allowed = parts.iter().map(ranked::Part::allowed).collect::<Vec<_>>();
    let parts_of_words = words
        .iter()
        .zip(&allowed)
        .map(|(words, allowed)| WordsPart { words: *words, allowed: allowed.as_deref() })
        .collect::<Vec<_>>();
    // All that match, so that those of equal score come in the order of their paths, whatever parts they are in.
    let (found, total) = rank(&parts_of_words, query, usize::MAX, has_ended);
    if has_ended() {
        return Err(Unready::Ended);
    }
    let mut found = found;
    found.sort_by(|one, other| {
        let path = |ranked: &Ranked| parts[ranked.part].path(ranked.file).unwrap_or_default();
        other.score.total_cmp(&one.score).then_with(|| path(one).cmp(path(other)))
    });
    found.truncate(slice.end());
    let weights = term_weights(&parts_of_words, query);
    let has_more = total > slice.end() as u64;
    let mut page = Page { total, is_total_exact: true, has_more, ..Page::default() };
    let mut room = Room::new(slice.most_bytes);
    for ranked in found.into_iter().skip(slice.start) {
        let path = parts[ranked.part].path(ranked.file)?;
        let Some(text) = ranked::read(root, path) else { continue };
        let Some(line) = best_line(&text.bytes, query, Some(&weights)) else { continue };
        let mut hit = text.hit(path, line.line.into(), line.column.into(), slice.around);
        hit.score = Some(ranked.score);
        room.take(&hit)?;
        page.hits.push(hit);
    }
    page.next = page.has_more.then(|| slice.next());
    Ok(Some(page))
}
