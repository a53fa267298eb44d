//! The query plan: which blocks of a segment may contain a match.
//!
//! A plan combines posting lists: the intersection of the trigrams that a match must have all of, the union where one
//! of several is enough. It returns candidate blocks window by window, in order, so that a search that ends early has
//! read the posting lists only as far as it got (early exit).

use std::ops::Range;

use crate::{
    pattern::Requirement,
    segment::{TextSegment, Torn},
    trigrams::codec::PostingList,
};

/// A requirement with the posting lists that answer it.
pub(crate) struct Plan<'a> {
    segment: &'a TextSegment,
    required: PlanNode<'a>,
}

enum PlanNode<'a> {
    Everything,
    Postings(LazyPostings<'a>),
    /// Sorted by estimate: the most selective part comes first.
    Intersection(Vec<PlanNode<'a>>),
    /// An empty union means that no block can match.
    Union(Vec<PlanNode<'a>>),
    /// A union whose posting lists are not looked up yet. There may be many of them, and the other parts of an
    /// intersection may leave so few candidates that looking them up does not pay.
    DeferredUnion(&'a [Requirement]),
}

/// A posting list that is opened when it is first read.
struct LazyPostings<'a> {
    range: Range<usize>,
    opened: Option<PostingList<'a>>,
    /// The end of the last window that was read.
    read: u32,
}

/// The cost of verifying a candidate block, in bytes of posting lists that can be decoded in the same time. Most of
/// it is opening a file.
const VERIFY_COST: u64 = 1200;
/// The cost of looking up where a posting list is, in the same unit.
const LOOKUP_COST: u64 = 1000;
/// A posting list is assumed to rule out at least one candidate in this many, even if the list before it ruled out
/// fewer.
const MIN_RULED_OUT: u64 = 16;

impl<'a> Plan<'a> {
    pub(crate) fn new(segment: &'a TextSegment, required: &'a Requirement) -> Result<Self, Torn> {
        Ok(Self { segment, required: PlanNode::new(segment, required)? })
    }

    /// How many blocks remain, estimated by the bytes of their posting lists; 0 if no block can match.
    pub(crate) fn estimate(&self) -> usize {
        self.required.estimate()
    }

    /// The blocks within a window that meet the requirement, ascending; `None` if every block does. A window must not
    /// begin before the end of the previous one.
    pub(crate) fn candidates(&mut self, window: Range<u32>) -> Result<Option<Vec<u32>>, Torn> {
        self.required.candidates(self.segment, &window)
    }
}

impl<'a> PlanNode<'a> {
    fn new(segment: &TextSegment, required: &'a Requirement) -> Result<Self, Torn> {
        Ok(match required {
            Requirement::Anything => Self::Everything,
            Requirement::Nothing => Self::Union(Vec::new()),
            Requirement::Trigram(trigram) => match segment.find_postings(*trigram)? {
                Some(range) => Self::Postings(LazyPostings { range, opened: None, read: 0 }),
                None => Self::Union(Vec::new()),
            },
            Requirement::All(parts) => {
                let mut planned = Vec::with_capacity(parts.len());
                let has_trigrams = parts.iter().any(|part| matches!(part, Requirement::Trigram(_)));
                for part in parts {
                    let part = match part {
                        Requirement::Either(parts) if has_trigrams => Self::DeferredUnion(parts),
                        part => Self::new(segment, part)?,
                    };
                    // A part without any block makes the whole intersection empty, so the others need not be looked
                    // up.
                    if part.estimate() == 0 {
                        return Ok(part);
                    }
                    planned.push(part);
                }
                planned.sort_by_key(Self::estimate);
                Self::Intersection(planned)
            }
            Requirement::Either(parts) => Self::union_of(segment, parts)?,
        })
    }

    fn union_of(segment: &TextSegment, parts: &'a [Requirement]) -> Result<Self, Torn> {
        let planned = parts.iter().map(|part| Self::new(segment, part));
        let planned = planned.filter(|part| !part.as_ref().is_ok_and(|part| part.estimate() == 0));
        Ok(Self::Union(planned.collect::<Result<_, _>>()?))
    }

    /// The estimated size in bytes of posting lists: a longer list has more blocks.
    fn estimate(&self) -> usize {
        match self {
            Self::Everything | Self::DeferredUnion(_) => usize::MAX,
            Self::Postings(list) => list.range.len(),
            Self::Intersection(parts) => parts.iter().map(Self::estimate).min().unwrap_or(usize::MAX),
            Self::Union(parts) => parts.iter().map(Self::estimate).fold(0, usize::saturating_add),
        }
    }

    /// How many bytes of posting lists must be decoded to filter the candidates of a window.
    fn cost(&self, segment: &TextSegment, window: &Range<u32>) -> u64 {
        match self {
            Self::Everything => 0,
            Self::Postings(list) => list.cost(segment, window),
            Self::Intersection(parts) | Self::Union(parts) => {
                parts.iter().map(|part| part.cost(segment, window)).fold(0, u64::saturating_add)
            }
            Self::DeferredUnion(parts) => LOOKUP_COST * parts.len() as u64,
        }
    }

    fn candidates(
        &mut self,
        segment: &'a TextSegment,
        window: &Range<u32>,
    ) -> Result<Option<Vec<u32>>, Torn> {
        let mut found = Vec::new();
        match self {
            Self::Everything => return Ok(None),
            Self::DeferredUnion(parts) => {
                *self = Self::union_of(segment, parts)?;
                return self.candidates(segment, window);
            }
            Self::Postings(list) => {
                list.open(segment, window)?.each(window.clone(), |block| found.push(block))
            }
            Self::Union(parts) => {
                // The union is a bitmap with one bit a block.
                let mut united = vec![0_u64; window.len().div_ceil(64)];
                let mut add = |block: u32| {
                    let bit = (block - window.start) as usize;
                    united[bit / 64] |= 1 << (bit % 64);
                };
                for part in parts {
                    match part {
                        Self::Postings(list) => list.open(segment, window)?.each(window.clone(), &mut add),
                        part => match part.candidates(segment, window)? {
                            None => return Ok(None),
                            Some(found) => found.into_iter().for_each(&mut add),
                        },
                    }
                }
                found = members(&united, window.start);
            }
            Self::Intersection(parts) => {
                let Some((first, rest)) = parts.split_first_mut() else { return Ok(None) };
                let Some(first) = first.candidates(segment, window)? else { return Ok(None) };
                found = first;
                // Nothing is known yet of how much a list rules out, so the first one is assumed to rule out
                // everything.
                let mut ruled_out = found.len() as u64;
                for part in rest {
                    let saved =
                        (ruled_out * VERIFY_COST).max(found.len() as u64 * VERIFY_COST / MIN_RULED_OUT);
                    if part.cost(segment, window) > saved {
                        continue;
                    }
                    if let Self::DeferredUnion(parts) = part {
                        *part = Self::union_of(segment, parts)?;
                        if part.cost(segment, window) > saved {
                            continue;
                        }
                    }
                    let before = found.len();
                    match part {
                        Self::Postings(list) => {
                            list.open(segment, window)?.retain(window.clone(), &mut found)
                        }
                        part => {
                            if let Some(others) = part.candidates(segment, window)? {
                                let mut others = others.into_iter().peekable();
                                found.retain(|block| {
                                    while others.next_if(|other| other < block).is_some() {}
                                    others.peek() == Some(block)
                                });
                            }
                        }
                    }
                    ruled_out = (before - found.len()) as u64;
                }
            }
        }
        Ok(Some(found))
    }
}

impl<'a> LazyPostings<'a> {
    /// Opens the posting list for a window.
    fn open(&mut self, segment: &'a TextSegment, window: &Range<u32>) -> Result<&mut PostingList<'a>, Torn> {
        self.read = window.end;
        match &mut self.opened {
            Some(list) => Ok(list),
            unopened => Ok(unopened.insert(segment.posting_list(self.range.clone())?)),
        }
    }

    /// How many bytes must be decoded to filter the candidates of a window.
    fn cost(&self, segment: &TextSegment, window: &Range<u32>) -> u64 {
        let blocks = segment.files().blocks().max(1);
        // Of a bitmap only the bits of the candidates are read.
        if self.range.len() >= blocks as usize / 8 {
            return 0;
        }
        let unread = window.end.saturating_sub(self.read);
        self.range.len() as u64 * u64::from(unread) / u64::from(blocks)
    }
}

fn members(bits: &[u64], first: u32) -> Vec<u32> {
    let mut members = Vec::new();
    for (index, &word) in bits.iter().enumerate() {
        let mut word = word;
        while word != 0 {
            members.push(first + index as u32 * 64 + word.trailing_zeros());
            word &= word - 1;
        }
    }
    members
}
