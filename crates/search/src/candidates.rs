//! Which blocks of a segment may hold a match.

use crate::{
    grams::{Gram, codec::List},
    pattern::Requirement,
    segment::{TextSegment, Torn},
};

/// Some blocks of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Candidates {
    All,
    /// Ascending.
    These(Vec<u32>),
}

/// The blocks that have what is required.
pub(crate) fn candidates(segment: &TextSegment, required: &Requirement) -> Result<Candidates, Torn> {
    let planned = Plan::new(segment, required)?;
    Ok(planned.evaluate(segment.files().blocks()))
}

/// A requirement with its lists at hand, so that it is known how much each part leaves.
enum Plan<'a> {
    All,
    List(List<'a>),
    /// The parts that leave the least come first.
    Every(Vec<Plan<'a>>),
    Some(Vec<Plan<'a>>),
}

impl<'a> Plan<'a> {
    fn new(segment: &'a TextSegment, required: &Requirement) -> Result<Self, Torn> {
        let list = |gram: Gram| Ok(segment.list(gram)?.map_or(Self::Some(Vec::new()), Self::List));
        Ok(match required {
            Requirement::Anything => Self::All,
            Requirement::Nothing => Self::Some(Vec::new()),
            Requirement::Gram(gram) => list(*gram)?,
            Requirement::All(parts) => {
                let mut planned = Vec::with_capacity(parts.len());
                for part in parts {
                    let part = Self::new(segment, part)?;
                    // One that leaves nothing decides, and no other need be looked up.
                    if part.most() == 0 {
                        return Ok(part);
                    }
                    planned.push(part);
                }
                planned.sort_by_key(Self::most);
                Self::Every(planned)
            }
            Requirement::Either(parts) => {
                let planned = parts.iter().map(|part| Self::new(segment, part));
                let planned = planned.filter(|part| !part.as_ref().is_ok_and(|part| part.most() == 0));
                Self::Some(planned.collect::<Result<_, _>>()?)
            }
        })
    }

    /// How many blocks it leaves at most.
    fn most(&self) -> u64 {
        match self {
            Self::All => u64::MAX,
            Self::List(list) => list.count().into(),
            Self::Every(parts) => parts.iter().map(Self::most).min().unwrap_or(u64::MAX),
            Self::Some(parts) => parts.iter().map(Self::most).fold(0, u64::saturating_add),
        }
    }

    /// How many numbers must be read to know which blocks it leaves.
    fn cost(&self) -> u64 {
        match self {
            Self::All => 0,
            Self::List(list) => list.count().into(),
            Self::Every(parts) | Self::Some(parts) => {
                parts.iter().map(Self::cost).fold(0, u64::saturating_add)
            }
        }
    }

    fn evaluate(&self, blocks: u32) -> Candidates {
        match self {
            Self::All => Candidates::All,
            Self::List(list) => {
                let mut found = Vec::with_capacity(list.count() as usize);
                list.each(|block| found.push(block));
                Candidates::These(found)
            }
            Self::Some(parts) => {
                // One bit a block.
                let mut united = vec![0_u64; blocks.div_ceil(64) as usize];
                for part in parts {
                    let add = |block: u32| united[block as usize / 64] |= 1 << (block % 64);
                    match part {
                        Self::List(list) => list.each(add),
                        part => match part.evaluate(blocks) {
                            Candidates::All => return Candidates::All,
                            Candidates::These(found) => found.into_iter().for_each(add),
                        },
                    }
                }
                Candidates::These(members(&united))
            }
            Self::Every(parts) => {
                let Some((first, rest)) = parts.split_first() else { return Candidates::All };
                let Candidates::These(mut found) = first.evaluate(blocks) else { return Candidates::All };
                for part in rest {
                    // Looking at a block takes as long as reading about a thousand numbers.
                    if part.cost() / 1000 > found.len() as u64 {
                        continue;
                    }
                    match part {
                        Self::List(list) => list.retain(&mut found),
                        part => {
                            if let Candidates::These(others) = part.evaluate(blocks) {
                                let mut others = others.into_iter().peekable();
                                found.retain(|block| {
                                    while others.next_if(|other| other < block).is_some() {}
                                    others.peek() == Some(block)
                                });
                            }
                        }
                    }
                }
                Candidates::These(found)
            }
        }
    }
}

fn members(bits: &[u64]) -> Vec<u32> {
    let mut members = Vec::new();
    for (index, &word) in bits.iter().enumerate() {
        let mut word = word;
        while word != 0 {
            members.push(index as u32 * 64 + word.trailing_zeros());
            word &= word - 1;
        }
    }
    members
}
