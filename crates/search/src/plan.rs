//! Which blocks of a segment may hold a match.
//!
//! Blocks are asked for window by window, in order, so that a search that has enough early pays for what it saw alone.

use std::ops::Range;

use crate::{
    pattern::Requirement,
    segment::{TextSegment, Torn},
    trigrams::codec::PostingList,
};

/// What is required, with the lists that tell where it is.
pub(crate) struct Plan<'a> {
    segment: &'a TextSegment,
    required: PlanNode<'a>,
}

enum PlanNode<'a> {
    Everything,
    Postings(LazyPostings<'a>),
    /// The parts that leave the least come first.
    Intersection(Vec<PlanNode<'a>>),
    Union(Vec<PlanNode<'a>>),
    /// Some part whose lists are not looked up yet: there are many, and others may leave so little that it is not
    /// worth it.
    DeferredUnion(&'a [Requirement]),
}

/// A list that is opened when it is first read.
struct LazyPostings<'a> {
    range: Range<usize>,
    opened: Option<PostingList<'a>>,
    /// The end of the last window that was read.
    read: u32,
}

/// How long looking at a candidate takes, in the time that a byte of a list takes to read: a file must be opened.
const VERIFY_COST: u64 = 1200;
/// How long it takes to look up where a list is, in the same time.
const LOOKUP_COST: u64 = 1000;
/// A list is expected to rule out one candidate in so many at least, whatever the one before it did.
const MIN_RULED_OUT: u64 = 16;

impl<'a> Plan<'a> {
    pub(crate) fn new(segment: &'a TextSegment, required: &'a Requirement) -> Result<Self, Torn> {
        Ok(Self { segment, required: PlanNode::new(segment, required)? })
    }

    /// How much the index leaves, in bytes of lists; nothing if it rules everything out.
    pub(crate) fn estimate(&self) -> usize {
        self.required.estimate()
    }

    /// The blocks within a window that have what is required, ascending; `None` if nothing is ruled out. No window
    /// begins before the last one's end.
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
                    // One that leaves nothing decides, and no other need be looked up.
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

    /// How much it leaves, in bytes of lists: a list that is longer has more blocks.
    fn estimate(&self) -> usize {
        match self {
            Self::Everything | Self::DeferredUnion(_) => usize::MAX,
            Self::Postings(list) => list.range.len(),
            Self::Intersection(parts) => parts.iter().map(Self::estimate).min().unwrap_or(usize::MAX),
            Self::Union(parts) => parts.iter().map(Self::estimate).fold(0, usize::saturating_add),
        }
    }

    /// How many bytes must be read to know which of some candidates it leaves.
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
                // One bit a block.
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
                // At first nothing is known of how much lists rule out, and all is hoped for.
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
    /// The list, to be read within a window.
    fn open(&mut self, segment: &'a TextSegment, window: &Range<u32>) -> Result<&mut PostingList<'a>, Torn> {
        self.read = window.end;
        match &mut self.opened {
            Some(list) => Ok(list),
            unopened => Ok(unopened.insert(segment.posting_list(self.range.clone())?)),
        }
    }

    /// How many bytes must be read to know which of some candidates are in it.
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
