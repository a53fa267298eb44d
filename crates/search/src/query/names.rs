//! Searches for symbols by name.

use pintle_ranked::{Case, Found, NameQuery, NamesPart, find};
use pintle_root::Root;
use pintle_symbols::Kind;

use super::{Filter, Page, hit::ResultBudget, ranked};
use crate::snapshot::{SearchError, Snapshot};

/// A page of the definitions whose names match, best first. Returns `None` if the symbols are not built yet.
pub(crate) fn find_names(
    root: &Root,
    snapshot: &Snapshot,
    (query, is_sensitive, kind): (&str, bool, Option<Kind>),
    filter: &Filter<'_>,
    request: &ranked::PageRequest,
    has_ended: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Page>, SearchError> {
    let overlay = snapshot.overlay.ranked(root, has_ended)?;
    let sources = ranked::sources(snapshot, overlay, filter);
    let names = sources.iter().map(|part| part.names().transpose());
    let Some(names) = names.collect::<Option<Result<Vec<_>, _>>>().transpose()? else { return Ok(None) };
    let allowed = sources.iter().map(ranked::RankedSource::allowed).collect::<Vec<_>>();
    let parts_of_names = names
        .iter()
        .zip(&allowed)
        .map(|(names, allowed)| NamesPart { names: *names, allowed: allowed.as_deref() })
        .collect::<Vec<_>>();
    let kinds = kind.map(|kind| [kind.id()]);
    let case = if is_sensitive { Case::Sensitive } else { Case::Insensitive };
    let query = NameQuery { name: query, case, kinds: kinds.as_ref().map(<[u8; 1]>::as_slice) };
    let finding = find(&parts_of_names, &query, request.end() + 1, has_ended);
    if has_ended() {
        return Err(SearchError::Cancelled);
    }
    let mut finding = finding;
    // Definitions of the same name are sorted by path, whichever segment they are in.
    for same in finding.found.chunk_by_mut(|one, next| one.name == next.name) {
        let path = |found: &Found| sources[found.part].path(found.file).unwrap_or_default();
        same.sort_by(|one, other| {
            path(one).cmp(path(other)).then(one.definition.line.cmp(&other.definition.line))
        });
    }
    let has_more = finding.found.len() > request.end();
    let mut page =
        Page { total: finding.total, is_total_exact: finding.is_total_exact, has_more, ..Page::default() };
    let mut budget = ResultBudget::new(request.most_bytes);
    for found in finding.found.into_iter().take(request.end()).skip(request.start) {
        let path = sources[found.part].path(found.file)?;
        let Some(text) = ranked::read(root, path) else { continue };
        // The file may have changed since it was indexed, if there is no watcher that reports it.
        let Some(definition) = text.current(&found, path) else { continue };
        let mut hit = text.hit(path, definition.line.into(), definition.column.into(), request.around);
        hit.end_line = definition.end_line.into();
        hit.kind = Kind::from_id(definition.kind).map(Kind::name);
        hit.name = Some(found.name);
        budget.charge(&hit)?;
        page.hits.push(hit);
    }
    page.next = page.has_more.then(|| request.next());
    Ok(Some(page))
}
