//! Symbols by name.

use pintle_ranked::{Case, Found, NameQuery, NamesPart, find};
use pintle_root::Root;
use pintle_symbols::Kind;

use super::{Filter, Page, hit::Room, ranked};
use crate::live::{Snapshot, Unready};

/// A page of the definitions whose names match, best first. Nothing if the names are not built yet.
pub(crate) fn find_names(
    root: &Root,
    snapshot: &Snapshot,
    (query, is_sensitive, kind): (&str, bool, Option<Kind>),
    filter: &Filter<'_>,
    slice: &ranked::Slice,
    has_ended: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Page>, Unready> {
    let fresh = snapshot.overlay.ranked(root, has_ended)?;
    let parts = ranked::parts(snapshot, fresh, filter);
    let names = parts.iter().map(|part| part.names().transpose());
    let Some(names) = names.collect::<Option<Result<Vec<_>, _>>>().transpose()? else { return Ok(None) };
    let allowed = parts.iter().map(ranked::Part::allowed).collect::<Vec<_>>();
    let parts_of_names = names
        .iter()
        .zip(&allowed)
        .map(|(names, allowed)| NamesPart { names: *names, allowed: allowed.as_deref() })
        .collect::<Vec<_>>();
    let kinds = kind.map(|kind| [kind.id()]);
    let case = if is_sensitive { Case::Sensitive } else { Case::Insensitive };
    let query = NameQuery { name: query, case, kinds: kinds.as_ref().map(<[u8; 1]>::as_slice) };
    let finding = find(&parts_of_names, &query, slice.end() + 1, has_ended);
    if has_ended() {
        return Err(Unready::Ended);
    }
    let mut finding = finding;
    // Definitions of one name come in the order of their paths, whatever parts they are in.
    for same in finding.found.chunk_by_mut(|one, next| one.name == next.name) {
        let path = |found: &Found| parts[found.part].path(found.file).unwrap_or_default();
        same.sort_by(|one, other| {
            path(one).cmp(path(other)).then(one.definition.line.cmp(&other.definition.line))
        });
    }
    let has_more = finding.found.len() > slice.end();
    let mut page =
        Page { total: finding.total, is_total_exact: finding.is_total_exact, has_more, ..Page::default() };
    let mut room = Room::new(slice.most_bytes);
    for found in finding.found.into_iter().take(slice.end()).skip(slice.start) {
        let path = parts[found.part].path(found.file)?;
        let Some(text) = ranked::read(root, path) else { continue };
        // A file may have changed since; without a watch nobody has told.
        let Some(definition) = text.current(&found, path) else { continue };
        let mut hit = text.hit(path, definition.line.into(), definition.column.into(), slice.around);
        hit.end_line = definition.end_line.into();
        hit.kind = Kind::from_id(definition.kind).map(Kind::name);
        hit.name = Some(found.name);
        room.take(&hit)?;
        page.hits.push(hit);
    }
    page.next = page.has_more.then(|| slice.next());
    Ok(Some(page))
}
