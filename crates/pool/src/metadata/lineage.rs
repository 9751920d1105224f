//! Which label of a pool counts: the labels of its drives compared (decision 0008, "At a start").
//!
//! Label *n* descends from *o* if its generation is not lower and it calls lost or removed everyone whom *o* does, or says
//! that they were lost then and are believed again (the last resort), and the drive that *o* lies on did not go on by itself
//! (`went_on_without`). A label is complete if no drive that is there, and that it calls active, has a label that does not
//! descend from it: then something may have been acknowledged on it. A label that is not complete was interrupted while it
//! was written, and nothing was. Two complete labels of which neither descends from the other are two histories, and so are
//! two drives that were served by different starts ([`super::starts`]), or one whose label is older than what the other says
//! was complete. Labels of joinings that never came about, and of drives that were surely left behind, are not asked.

use uuid::Uuid;

use super::superblock::{PoolLabel, Superblock};
use crate::state::{Member, MemberState};

/// Whose label counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// That of this drive.
    One(usize),
    /// The drives went on in two groups without each other: those whose histories contradict each other.
    Split(Vec<usize>, Vec<usize>),
}

/// What a label says of a member; nothing where it does not know it.
fn state_of(label: &PoolLabel, id: Uuid) -> Option<MemberState> {
    label.members.iter().find(|member| member.id == id).map(|member| member.state)
}

fn is_active(label: &PoolLabel, id: Uuid) -> bool {
    state_of(label, id) == Some(MemberState::Active)
}

/// In which generation a member was lost, or removed without having been lost, as far as a label knows; of one that
/// serves, before it was believed again.
fn lost_in(label: &PoolLabel, id: Uuid) -> Option<u64> {
    let place = label.members.iter().position(|member| member.id == id)?;
    label.lost_in.get(&(place as u32)).copied()
}

/// In which generation a member left that is lost or removed, as far as a label knows.
fn left_in(label: &PoolLabel, id: Uuid) -> Option<u64> {
    lost_in(label, id).filter(|_| !is_active(label, id))
}

/// Whether the drive of `own` went on by itself, as `other` tells, which calls it lost or removed: with those whom it calls
/// active, or alone. They must have been gone by then, for one that served on knew nothing of it; and its label must be of
/// no earlier generation, or know of a loss of which `other` knows nothing. A drive that is being lost has at most the
/// generation before that in which the loss is recorded, so it has a later one only by a history of its own, or because it
/// was about to be believed again, which it says then; an earlier one proves nothing if it was lost at a start, which did
/// not know how far the drive had come.
fn went_on_without(own: &Superblock, other: &Superblock) -> bool {
    let Some(gone_in) = left_in(&other.label, own.member) else { return false };
    if lost_in(&own.label, own.member) == Some(gone_in) {
        return false;
    }
    let members = || own.label.members.iter().map(|member| member.id);
    let others = || members().filter(|id| *id != own.member && is_active(&own.label, *id));
    let are_gone = others().all(|id| left_in(&other.label, id).is_some_and(|left| left <= gone_in));
    let is_unheard_of = |id| {
        let here = left_in(&own.label, id);
        here.is_some() && left_in(&other.label, id).is_some_and(|there| here != Some(there))
    };
    are_gone && (own.generation >= gone_in || members().any(is_unheard_of))
}

/// Whether two drives were served by two starts at a generation that both know to be complete, or may have been, because one
/// has forgotten who served it then: one of them is of a copy of the array, or older than that one remembers.
pub(super) fn is_of_another_history(one: &Superblock, other: &Superblock) -> bool {
    let knows_starts = !one.label.starts.is_empty() && !other.label.starts.is_empty();
    let (one, other) = starts_shared(one, other);
    knows_starts && one != other
}

/// Whether two drives were served by two starts for certain.
pub(super) fn is_of_a_copy(one: &Superblock, other: &Superblock) -> bool {
    let (one, other) = starts_shared(one, other);
    one.zip(other).is_some_and(|(one, other)| one != other)
}

/// Who served two drives at the last generation that both know to be complete.
fn starts_shared(one: &Superblock, other: &Superblock) -> (Option<u64>, Option<u64>) {
    let shared = one.label.settled.min(other.label.settled);
    (one.label.starts.at(shared), other.label.starts.at(shared))
}

/// Whether what `newer` says follows from what `older` says.
fn descends(newer: &Superblock, older: &Superblock) -> bool {
    let gone = |state: Option<MemberState>| matches!(state, Some(MemberState::Lost | MemberState::Removed));
    newer.generation >= older.generation
        && !went_on_without(older, newer)
        && older.label.members.iter().all(|member| match member.state {
            MemberState::Active => state_of(&newer.label, member.id).is_some(),
            _ => gone(state_of(&newer.label, member.id)) || is_believed_again(member.id, older, newer),
        })
}

/// Whether `newer` had the loss of a member, the one that `older` knows if it knows of any, and believes it again.
fn is_believed_again(id: Uuid, older: &Superblock, newer: &Superblock) -> bool {
    let now = lost_in(&newer.label, id).filter(|_| is_active(&newer.label, id));
    now.is_some() && lost_in(&older.label, id).is_none_or(|then| now == Some(then))
}

/// Whether a drive was put back to an older image: a label that calls it active says that a later generation was
/// complete on all its members, or one under another start.
pub(super) fn is_rolled_back(own: &Superblock, all: &[&Superblock]) -> bool {
    // A start that was cut, which the others never heard of, may have raised the generation of an older image.
    let has_missed = |other: &Superblock| {
        let starts = own.label.starts.at(other.label.settled).zip(other.label.starts.at(other.label.settled));
        own.generation < other.label.settled || starts.is_some_and(|(own, other)| own != other)
    };
    let later = |other: &&&Superblock| has_missed(other) && is_active(&other.label, own.member);
    let follows = |other: &&&Superblock| later(other) && !is_of_another_history(own, other);
    all.iter().any(|other| follows(&other))
}

/// Whether a joining was cut short, and never came about: the label of a drive that was joining, or of one that had just been
/// told, names a member of which a drive that went on knows nothing, although the pool would know it if anything had been
/// acknowledged with it. The start that was cut short went on itself without it; or a drive that was to serve with it was
/// there at a later start, which recorded no loss of that drive: it would have told of the one that had joined.
fn never_joined(own: &Superblock, other: &Superblock) -> bool {
    let Some(start) = own.label.starts.current() else { return false };
    let active = || own.label.members.iter().filter(|member| member.is_active()).map(|member| member.id);
    if other.generation < own.generation
        || active().all(|id| state_of(&other.label, id).is_some())
        || is_of_another_history(own, other)
    {
        return false;
    }
    if other.label.starts.current() == Some(start) {
        return other.generation > own.generation;
    }
    // A loss that the same start recorded afterwards is in a label that did not know of the joining.
    let next = other.label.starts.after(start).next();
    let since = |id| left_in(&other.label, id).filter(|left| *left > own.generation);
    let went_on = next.is_some_and(|next| active().any(|id| since(id).is_some_and(|left| left < next)));
    let came_to = |from: u64| {
        active().filter(|id| *id != own.member).any(|id| {
            is_active(&other.label, id) || lost_in(&other.label, id).is_some_and(|lost| lost > from)
        })
    };
    // What such a drive did by itself may have been given up, and it has all of this one's history then, or all but the end.
    let was_given_up = other.label.given_up.values().any(|given_up| given_up.up_to + 1 >= own.generation);
    !was_given_up && (went_on || other.label.starts.after(start).any(came_to))
}

/// Whether the pool surely went on without a drive, which did nothing by itself: that it is gone was complete. Then it counts
/// for nothing, whatever became of the others since: where each of their labels was interrupted, its own is complete.
fn was_left_behind(own: &Superblock, all: &[(usize, &Superblock)]) -> bool {
    let is_behind = |other: &Superblock| {
        left_in(&other.label, own.member).is_some_and(|gone_in| own.generation < gone_in)
            && !is_of_another_history(own, other)
            && descends(other, own)
    };
    let is_complete = |other: &Superblock| {
        left_in(&other.label, own.member).is_some_and(|gone_in| gone_in <= other.label.settled)
    };
    let others = || all.iter().map(|(_, other)| *other).filter(|other| other.member != own.member);
    let mut with_it = others().filter(|other| is_active(&own.label, other.member)).peekable();
    others().any(|other| is_complete(other) && is_behind(other))
        // Whatever it was to serve with says so, of those that are there: they have all that it has.
        || with_it.peek().is_some() && with_it.all(is_behind)
}

/// Whether the drive of `own` went on by itself, or may have, as one that serves tells, and that was not given up.
pub(super) fn went_on_alone(own: &Superblock, serving: &Superblock) -> bool {
    let is_given_up = serving.label.given_up.get(&own.member).is_some_and(|given_up| given_up.covers(own));
    // It did without a member otherwise than the one that serves. When, is of no matter: the others may have recorded its
    // own loss after that.
    let did_without = |member: &Member| {
        let (here, there) = (left_in(&own.label, member.id), left_in(&serving.label, member.id));
        !member.is_active()
            && match state_of(&serving.label, member.id) {
                Some(MemberState::Active) => !is_believed_again(member.id, own, serving),
                Some(_) => here.zip(there).is_some_and(|(here, there)| here != there),
                None => true,
            }
    };
    !is_given_up
        && (own.label.members.iter().any(did_without)
            || went_on_without(own, serving)
            || is_of_a_copy(own, serving)
            || own.label.settled > serving.generation)
}

/// Chooses among the superblocks of all drives that are there and were not rolled back.
pub(super) fn choose(all: &[(usize, &Superblock)]) -> Choice {
    let counts = |own: &Superblock| {
        !all.iter().any(|(_, other)| never_joined(own, other)) && !was_left_behind(own, all)
    };
    let counting: Vec<(usize, &Superblock)> = all.iter().copied().filter(|(_, own)| counts(own)).collect();
    choose_among(if counting.is_empty() { all } else { &counting })
}

/// As [`choose`], of drives that have joined and were not left behind.
fn choose_among(all: &[(usize, &Superblock)]) -> Choice {
    let chosen = match choose_by_descent(all) {
        Choice::One(chosen) => chosen,
        split @ Choice::Split(..) => return split,
    };
    let counts = all.iter().find(|(drive, _)| *drive == chosen).expect("one of them was chosen").1;
    // Who is lost there counts for nothing, unless it surely went on by itself. Where each label of those that went on was
    // interrupted, they say all the same how far they had come: so does one that the start had told more than the chosen one.
    let serves_with_it = |other: &Superblock| {
        is_active(&counts.label, other.member)
            && descends(other, counts)
            && other.label.starts.at(counts.generation) == counts.label.starts.current()
    };
    let is_of_a_copy = |own: &Superblock| {
        is_of_a_copy(own, counts)
            || all.iter().any(|(_, other)| serves_with_it(other) && is_of_a_copy(own, other))
    };
    // The loss of the drive that was chosen was complete there, and others may have acknowledged something since, of whom none
    // serves with it: one that does would have told of it, or the drive was believed again and the loss forgotten.
    let went_on_without_it = |own: &Superblock| {
        let active = own.label.members.iter().filter(|member| member.is_active() && member.id != own.member);
        left_in(&own.label, counts.member).is_some_and(|left| left <= own.label.settled)
            && !active.into_iter().any(|member| is_active(&counts.label, member.id))
            && !descends(counts, own)
    };
    let is_strange = |own: &Superblock| {
        is_of_a_copy(own)
            || match is_active(&counts.label, own.member) {
                true => is_of_another_history(own, counts),
                false => own.label.settled > counts.generation || went_on_without_it(own),
            }
    };
    let (strange, own): (Vec<_>, Vec<_>) = all.iter().partition(|(_, superblock)| is_strange(superblock));
    match strange.is_empty() {
        true => Choice::One(chosen),
        false => {
            let drives =
                |group: Vec<&(usize, &Superblock)>| group.into_iter().map(|(drive, _)| *drive).collect();
            Choice::Split(drives(own), drives(strange))
        }
    }
}

/// As [`choose`], of drives of one history.
fn choose_by_descent(all: &[(usize, &Superblock)]) -> Choice {
    let is_complete = |label: &Superblock| {
        let mut active = all.iter().filter(|(_, other)| is_active(&label.label, other.member));
        active.all(|(_, other)| descends(other, label))
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let label = |group: &Vec<usize>| all[group[0]].1;
    let is_same =
        |one: &Superblock, other: &Superblock| one.generation == other.generation && one.label == other.label;
    for (place, (_, superblock)) in all.iter().enumerate() {
        match groups.iter_mut().find(|group| is_same(all[group[0]].1, superblock)) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    let complete: Vec<&Vec<usize>> = groups.iter().filter(|group| is_complete(label(group))).collect();
    let newest: Vec<&&Vec<usize>> = complete
        .iter()
        .filter(|group| {
            // Two of one generation may follow each other: then the first of them stays.
            let follows = |one: &[usize], other: &[usize]| {
                other.iter().all(|place| descends(all[one[0]].1, all[*place].1))
            };
            let followed = |other: &&&Vec<usize>| {
                !is_same(label(other), label(group))
                    && follows(other, group)
                    && (other[0] < group[0] || !follows(group, other))
            };
            !complete.iter().any(|other| followed(&other))
        })
        .collect();
    let drives = |group: &[usize]| group.iter().map(|place| all[*place].0).collect::<Vec<usize>>();
    match newest[..] {
        [one, other, ..] => Choice::Split(drives(one), drives(other)),
        [one] => Choice::One(all[one[0]].0),
        // Each was interrupted: nothing was acknowledged on any. What most have is as good as the rest.
        [] => {
            let best = groups.iter().rev().max_by_key(|group| (label(group).generation, group.len()));
            Choice::One(all[best.expect("a pool was found on a drive")[0]].0)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::features::Features;
    use crate::metadata::starts::Starts;
    use crate::metadata::superblock::GivenUp;
    use crate::samples::{area, member};
    use crate::{Member, MemberState};

    /// The superblock of member `own` of four, which calls these lost.
    fn superblock(own: u32, generation: u64, settled: u64, lost: &[u32]) -> Superblock {
        let state = |place: &u32| match lost.contains(place) {
            true => MemberState::Lost,
            false => MemberState::Active,
        };
        let members: Vec<Member> =
            (0..4).map(|place| Member { state: state(&place), ..member(place) }).collect();
        let label = PoolLabel {
            features: Features::default(),
            pool: Uuid::from_u128(1),
            array: "lab".into(),
            name: "p".into(),
            area: area(),
            carriers: vec![0],
            settled,
            lost_in: BTreeMap::new(),
            given_up: BTreeMap::new(),
            members,
            starts: Starts::of(&[(1, 0xa)]),
        };
        Superblock { generation, member: label.members[own as usize].id, label }
    }

    fn choice(all: &[Superblock]) -> Choice {
        choose(&all.iter().enumerate().collect::<Vec<_>>())
    }

    #[test]
    fn a_drive_that_was_lost_is_stale() {
        let old = superblock(0, 4, 3, &[]);
        let went_on = superblock(1, 6, 5, &[0]);
        assert_eq!(choice(&[old, went_on]), Choice::One(1));
    }

    #[test]
    fn halves_that_went_on_without_each_other_are_a_split() {
        let one = superblock(0, 9, 8, &[1, 2, 3]);
        let other = superblock(1, 6, 5, &[0, 2, 3]);
        assert_eq!(choice(&[one, other]), Choice::Split(vec![0], vec![1]));
    }

    /// The first half was interrupted twice and had the higher generation; it won, and what the second half had
    /// acknowledged meanwhile was gone.
    #[test]
    fn a_higher_generation_alone_wins_nothing() {
        let one = superblock(0, 7, 4, &[]);
        let other = superblock(1, 6, 5, &[0]);
        // What the first says was never complete: the second serves in it, and does not know it.
        assert_eq!(choice(&[one, other]), Choice::One(1));
    }

    #[test]
    fn a_loss_that_was_being_recorded_is_no_history() {
        let told = superblock(2, 6, 4, &[1]);
        let others = [0, 1, 3].map(|own| superblock(own, 5, 4, &[]));
        let [a, b, d] = others;
        assert_eq!(choice(&[a, b, told, d]), Choice::One(0));
        // The drive that was told is away; the others go on without it, and it comes back.
        let told = superblock(2, 6, 4, &[1]);
        let later = [0, 1, 3].map(|own| superblock(own, 8, 7, &[2]));
        let [a, b, d] = later;
        assert_eq!(choice(&[told, a, b, d]), Choice::One(1));
    }

    #[test]
    fn two_interrupted_losses_leave_what_was_before() {
        let (one, other) = (superblock(0, 6, 4, &[2]), superblock(1, 6, 4, &[3]));
        let before = [2, 3].map(|own| superblock(own, 5, 4, &[]));
        let [c, d] = before;
        assert_eq!(choice(&[one.clone(), other.clone(), c, d]), Choice::One(2));
        assert_eq!(choice(&[one, other]), Choice::One(0));
    }

    /// One half lost the other, and went on until it was new drives alone: the other, which had gone on by itself, counted
    /// as its ancestor if its generation was lower, and what it had acknowledged was gone without a word.
    #[test]
    fn halves_of_which_one_was_renewed_are_a_split() {
        let renewed = |generation: u64, lost_in: u64| {
            let mut one = superblock(2, generation, generation - 1, &[1]);
            one.label.members[0].state = MemberState::Removed;
            one.label.lost_in = BTreeMap::from([(1, lost_in)]);
            one
        };
        // It knows none of the new ones.
        let half = |generation, lost: &[u32]| {
            let mut half = superblock(1, generation, generation - 1, lost);
            half.label.members.truncate(2);
            half
        };
        assert_eq!(choice(&[renewed(20, 11), half(15, &[0])]), Choice::Split(vec![0], vec![1]));
        assert_eq!(choice(&[renewed(20, 11), half(10, &[])]), Choice::One(0));
        // The last resort was about to believe it again, and it says so.
        let mut again = half(15, &[0]);
        again.label.lost_in = BTreeMap::from([(1, 11)]);
        assert_eq!(choice(&[renewed(20, 11), again]), Choice::One(0));
    }

    /// A drive was being taken back when the power was cut, and its label alone named it; the next start did without it. When the
    /// drives of that time had been replaced one by one, a start was refused as a split, although nobody had gone on with it.
    #[test]
    fn a_joining_that_was_cut_short_is_no_history() {
        let joining = |generation| {
            let mut joining = superblock(3, generation, generation - 1, &[1, 2]);
            joining.label.starts = Starts::of(&[(1, 0xa)]);
            joining
        };
        let later = |starts: &[(u64, u64)], lost_in: u64| {
            let mut later = superblock(2, 11, 10, &[0, 1]);
            later.label.members.truncate(3);
            later.label.lost_in = BTreeMap::from([(0, lost_in), (1, 3)]);
            later.label.starts = Starts::of(starts);
            later
        };
        // The first drive was there at the start from generation 6 on, and was lost later.
        assert_eq!(choice(&[joining(5), later(&[(1, 0xa), (6, 0xb)], 9)]), Choice::One(1));
        // It was lost by that start: it may have served with the one that joined.
        let split = Choice::Split(vec![0], vec![1]);
        assert_eq!(choice(&[joining(5), later(&[(1, 0xa), (6, 0xb)], 6)]), split);
        // Who has forgotten that start tells nothing.
        assert!(!never_joined(&joining(5), &later(&[(6, 0xb)], 9)));
        // The same start went on without it.
        assert_eq!(choice(&[joining(5), later(&[(1, 0xa)], 9)]), Choice::One(1));
        assert!(!never_joined(&joining(11), &later(&[(1, 0xa)], 9)), "it was the last that this start did");
        // Something that a drive did by itself was given up at some time: that may be what it was.
        let mut given_up = later(&[(1, 0xa), (6, 0xb)], 9);
        given_up.label.given_up = BTreeMap::from([(member(0).id, GivenUp { up_to: 5, start: None })]);
        assert_eq!(choice(&[joining(5), given_up.clone()]), split);
        // What was given up before it joined cannot be.
        given_up.label.given_up = BTreeMap::from([(member(0).id, GivenUp { up_to: 3, start: None })]);
        assert_eq!(choice(&[joining(5), given_up]), Choice::One(1));
    }

    /// The superblock of a member, at a generation before which all was complete: the starts, and the members' states with
    /// the generation in which they left. Members are 0 and 1, the drives of a mirror; 2, which was joining; 3 and 4, by
    /// which the mirror was renewed.
    fn mirror(
        own: u32,
        generation: u64,
        starts: &[(u64, u64)],
        members: &[(u32, MemberState, u64)],
    ) -> Superblock {
        let mut one = superblock(0, generation, generation - 1, &[]);
        let as_member =
            |(number, state, _): &(u32, MemberState, u64)| Member { state: *state, ..member(*number) };
        one.member = member(own).id;
        one.label.members = members.iter().map(as_member).collect();
        let left = (0u32..).zip(members).filter(|(_, (_, _, left))| *left > 0);
        one.label.lost_in = left.map(|(place, (_, _, left))| (place, *left)).collect();
        one.label.starts = Starts::of(starts);
        one
    }

    use MemberState::{Active, Lost, Removed};

    const FIRST: (u64, u64) = (1, 0xa);
    const SECOND: (u64, u64) = (6, 0xb);

    /// What the renewed mirror says, at a generation, of its first drives.
    fn renewed(generation: u64, starts: &[(u64, u64)], first: [(MemberState, u64); 2]) -> Superblock {
        let [a, b] = first;
        mirror(3, generation, starts, &[(0, a.0, a.1), (1, b.0, b.1), (3, Active, 0), (4, Active, 0)])
    }

    /// As above, but the drives of that time were replaced or removed: nothing told when they had left.
    #[test]
    fn a_joining_that_was_cut_short_is_no_history_when_its_drives_were_removed() {
        let joining = || mirror(2, 5, &[FIRST], &[(0, Active, 0), (1, Active, 0), (2, Active, 0)]);
        for first in [[(Removed, 9), (Removed, 12)], [(Lost, 9), (Removed, 12)], [(Removed, 9), (Lost, 5)]] {
            assert_eq!(
                choice(&[joining(), renewed(30, &[FIRST, SECOND], first)]),
                Choice::One(1),
                "{first:?}"
            );
        }
        // The start went on without it, and others came after the drives had left.
        let gone = [(Removed, 9), (Removed, 12)];
        assert_eq!(choice(&[joining(), renewed(33, &[FIRST, (32, 0xb)], gone)]), Choice::One(1));
        // They left before the next start, or with it: one of them may have gone on with the one that joined.
        let before = [(Removed, 5), (Lost, 6)];
        assert!(matches!(choice(&[joining(), renewed(30, &[FIRST, SECOND], before)]), Choice::Split(..)));
    }

    /// The joining had been told to one of the others when it was cut short. That one was away when the rest went on, and
    /// was no stale drive but a split when the others had been replaced.
    #[test]
    fn a_joining_that_one_other_had_heard_of_is_no_history() {
        let told = mirror(1, 5, &[FIRST], &[(0, Active, 0), (1, Active, 0), (2, Active, 0)]);
        let starts = [FIRST, SECOND];
        assert_eq!(choice(&[told.clone(), renewed(30, &starts, [(Active, 0), (Lost, 6)])]), Choice::One(1));
        assert_eq!(choice(&[told.clone(), renewed(30, &starts, [(Lost, 20), (Lost, 6)])]), Choice::One(1));
        // The other one is gone since that start: nobody proves that it did not go on with the one that joined.
        let split = choice(&[told, renewed(30, &starts, [(Lost, 6), (Lost, 6)])]);
        assert!(matches!(split, Choice::Split(..)));
    }

    /// One half was renewed and had taken the other out, which had gone on by itself: what that had acknowledged was gone
    /// without a word.
    #[test]
    fn halves_of_which_one_was_renewed_and_forgot_the_other_are_a_split() {
        let half = |generation| mirror(1, generation, &[FIRST, (6, 0xc)], &[(0, Lost, 6), (1, Active, 0)]);
        for first in [[(Removed, 20), (Removed, 6)], [(Lost, 20), (Removed, 6)], [(Removed, 20), (Lost, 6)]] {
            let later = renewed(40, &[FIRST, SECOND], first);
            assert_eq!(choice(&[half(9), later]), Choice::Split(vec![0], vec![1]), "{first:?}");
        }
        // It was emptied and taken out, and is of then.
        let stale = mirror(1, 9, &[FIRST], &[(0, Active, 0), (1, Active, 0)]);
        assert_eq!(
            choice(&[stale, renewed(40, &[FIRST, (30, 0xb)], [(Removed, 20), (Removed, 10)])]),
            Choice::One(1)
        );
    }

    /// A half that had recorded the other's loss and nothing after it had gone on all the same, as long as it liked for a
    /// minute; when the other half had been renewed, that was not seen.
    #[test]
    fn a_half_that_has_only_recorded_the_others_loss_may_have_gone_on() {
        let half = mirror(1, 5, &[FIRST], &[(0, Lost, 5), (1, Active, 0)]);
        let later = |first| renewed(40, &[FIRST, SECOND], first);
        assert_eq!(
            choice(&[half.clone(), later([(Removed, 20), (Lost, 6)])]),
            Choice::Split(vec![0], vec![1])
        );
        // Both know of that loss: it is stale and no more.
        assert_eq!(choice(&[half.clone(), later([(Lost, 5), (Lost, 6)])]), Choice::One(1));
        // It calls one active that served on: what it had begun to record was not complete.
        let of_three = mirror(1, 5, &[FIRST], &[(0, Lost, 5), (1, Active, 0), (3, Active, 0)]);
        assert_eq!(choice(&[of_three, later([(Removed, 20), (Lost, 6)])]), Choice::One(1));
        // That one was missing as well when the others went on: they may have gone on together.
        let mut missing = later([(Removed, 20), (Lost, 6)]);
        missing.label.members.push(Member { state: Lost, ..member(5) });
        missing.label.lost_in.insert(4, 6);
        let two = mirror(1, 5, &[FIRST], &[(0, Lost, 5), (1, Active, 0), (5, Active, 0)]);
        assert_eq!(choice(&[two, missing]), Choice::Split(vec![0], vec![1]));
    }

    /// Starts that were cut before anybody had heard of them raise the generation from which the next one counts: it proves
    /// nothing. What one half had acknowledged with a drive that had joined it was left out.
    #[test]
    fn starts_that_were_cut_prove_nothing_of_a_joining() {
        let half = mirror(1, 7, &[FIRST], &[(0, Lost, 5), (1, Active, 0), (2, Lost, 5), (4, Active, 0)]);
        for next in [7, 10, 40] {
            let members = [(0, Active, 0), (1, Lost, next), (2, Active, 0)];
            let other = mirror(0, next + 3, &[FIRST, (next, 0xb)], &members);
            assert_eq!(choice(&[half.clone(), other]), Choice::Split(vec![0], vec![1]), "{next}");
        }
    }

    /// Two starts were cut when one drive alone had heard of them. It called the other active, which served on: it had gone
    /// on with nobody, but was refused when the other had been replaced.
    #[test]
    fn a_drive_that_calls_one_active_which_served_on_is_stale() {
        let starts = [FIRST, (5, 0xc), (7, 0xd)];
        let mut cut = mirror(1, 7, &starts, &[(0, Active, 0), (1, Active, 0)]);
        cut.label.settled = 4;
        for first in [[(Removed, 20), (Removed, 6)], [(Lost, 20), (Lost, 6)]] {
            assert_eq!(
                choice(&[cut.clone(), renewed(40, &[FIRST, SECOND], first)]),
                Choice::One(1),
                "{first:?}"
            );
        }
        // If that one left with it, they may have gone on together.
        let both = renewed(40, &[FIRST, SECOND], [(Lost, 6), (Lost, 6)]);
        assert_eq!(choice(&[cut, both]), Choice::Split(vec![0], vec![1]));
    }

    /// Two power cuts had left the drives that serve with labels none of which was complete, and a drive that had been taken
    /// out long before took the array over, for everybody of its time was gone.
    #[test]
    fn a_drive_that_was_left_behind_does_not_take_over() {
        let starts = [FIRST, SECOND];
        let gone = [(0, Removed, 10), (1, Removed, 12), (2, Removed, 7)];
        let of = |own, generation, settled, a: (MemberState, u64)| {
            let members = [&gone[..], &[(3, a.0, a.1), (4, Active, 0), (5, Active, 0)]].concat();
            let mut of = mirror(own, generation, &starts, &members);
            of.label.settled = settled;
            of
        };
        let old = mirror(2, 5, &[FIRST], &[(0, Active, 0), (1, Active, 0), (2, Active, 0)]);
        // The loss of one was recorded on the last drive alone; the next start had reached the first two.
        let (a, b) = (of(3, 21, 18, (Active, 0)), of(4, 21, 18, (Active, 0)));
        let c = of(5, 19, 18, (Lost, 19));
        for all in [vec![a.clone(), b.clone(), c.clone()], vec![a, b, c, old]] {
            assert_eq!(choice(&all), Choice::One(0), "{}", all.len());
        }
    }

    /// One half was lost by a start that was cut and was told so twice; a later start of its own, with the drive that was lost
    /// in between, was taken for a drive that did nothing, and what it had acknowledged was gone.
    #[test]
    fn two_starts_that_both_served_are_a_split_though_one_of_a_half_was_lost_later() {
        let gone = [(0, Lost, 5), (1, Lost, 17), (2, Lost, 3), (3, Active, 0), (4, Active, 0)];
        let one = mirror(3, 18, &[FIRST, (3, 2), (5, 7), (7, 8), (13, 10)], &gone);
        let members = [(0, Active, 0), (1, Lost, 11), (2, Active, 0)];
        let other = mirror(2, 12, &[FIRST, (7, 5), (11, 13)], &members);
        assert_eq!(choice(&[one.clone(), other.clone()]), Choice::Split(vec![0], vec![1]));
        // It is stale if it served under the same start.
        let stale =
            Superblock { label: PoolLabel { starts: one.label.starts.clone(), ..other.label }, ..other };
        assert_eq!(choice(&[one, stale]), Choice::One(0));
    }

    /// Two power cuts had left the drives that serve with labels none of which was complete, and a drive that had served by
    /// itself, or was to, took the array over with its old data, for it knows of no later ones.
    #[test]
    fn labels_that_were_cut_tell_how_far_they_had_come() {
        let cut = |own, generation, last: (MemberState, u64)| {
            let members = [(0, Lost, 6), (1, Active, 0), (2, Active, 0), (3, last.0, last.1)];
            let mut cut = mirror(own, generation, &[FIRST, (7, 0xb)], &members);
            cut.label.settled = 18;
            cut
        };
        let (interrupted, next) = (cut(1, 20, (Lost, 20)), cut(2, 21, (Active, 0)));
        for (alone, settled) in [(7, 4), (8, 7), (25, 24)] {
            let lost = [(0, Active, 0), (1, Lost, 7), (2, Lost, 7)];
            let mut own = mirror(0, alone, &[FIRST, (7, 0xc)], &lost);
            own.label.settled = settled;
            let all = [own, interrupted.clone(), next.clone()];
            assert_eq!(choice(&all), Choice::Split(vec![0], vec![1, 2]), "{alone}");
        }
        assert!(matches!(choice(&[interrupted, next]), Choice::One(_)));
    }

    /// The loss of a drive was complete, but the starts after it were cut, and said so no more: with the last of those that
    /// knew it away, the lost drive's old label was the only complete one, and it was believed.
    #[test]
    fn a_drive_of_which_all_others_say_that_it_is_gone_is_stale() {
        let all_there = [(0, Active, 0), (1, Active, 0), (2, Active, 0), (3, Active, 0)];
        let mut lost = mirror(3, 2, &[FIRST], &all_there);
        lost.label.settled = 1;
        let of = |own, generation, start, b: (MemberState, u64)| {
            let mut of = mirror(
                own,
                generation,
                &[FIRST, (generation, start)],
                &[(0, Active, 0), (1, b.0, b.1), (2, Active, 0), (3, Lost, 3)],
            );
            of.label.settled = 2;
            of
        };
        let (a, c) = (of(0, 7, 5, (Active, 0)), of(2, 5, 4, (Lost, 5)));
        assert_eq!(choice(&[a.clone(), c.clone(), lost.clone()]), Choice::One(0));
        // One that does not know of the loss makes it doubtful, as long as nothing says that it was complete.
        let told_nothing = mirror(1, 2, &[FIRST], &all_there);
        assert_eq!(choice(&[a, c, lost, told_nothing]), Choice::One(2));
    }

    /// Each of two drives followed from the old label of a third one, whose starts had been cut, but not from each other: one was
    /// of a copy of the array. They were served together.
    #[test]
    fn two_drives_of_two_histories_do_not_serve_by_the_label_of_a_third() {
        let of = |own, generation, settled, lost: (u32, u64), starts: &[(u64, u64)]| {
            let mut of = superblock(own, generation, settled, &[lost.0]);
            of.label.lost_in = BTreeMap::from([lost]);
            of.label.starts = Starts::of(starts);
            of
        };
        let of_copy = of(0, 12, 11, (3, 2), &[(1, 1), (8, 2), (11, 3)]);
        let old = of(2, 11, 7, (3, 2), &[(1, 1), (8, 2), (11, 3)]);
        let mut own = of(1, 18, 17, (2, 9), &[(1, 1), (8, 4), (12, 5)]);
        own.label.members[3].state = MemberState::Lost;
        own.label.lost_in.insert(3, 2);
        let two = [of_copy.clone(), own.clone()];
        assert!(is_of_a_copy(&two[0], &two[1]));
        assert!(matches!(choice(&two), Choice::Split(..)));
        assert!(matches!(choice(&[of_copy, own, old]), Choice::Split(..)));
    }

    /// Two starts, of the drives of a half and of their copy, were cut at the same generation. Each label followed the other, so
    /// neither was the newest, and a drive that both had lost was served alone.
    #[test]
    fn two_labels_of_one_generation_do_not_outdo_each_other() {
        let half = |own, start| {
            mirror(own, 6, &[FIRST, (6, start)], &[(0, Lost, 6), (1, Active, 0), (2, Active, 0)])
        };
        let lost = mirror(0, 8, &[FIRST, (7, 9)], &[(0, Active, 0), (1, Lost, 7), (2, Lost, 7)]);
        for all in [[half(1, 7), half(2, 8), lost.clone()], [lost.clone(), half(2, 8), half(1, 7)]] {
            assert!(matches!(choice(&all), Choice::Split(..)));
        }
        assert!(matches!(choice(&[half(1, 7), half(2, 7), lost]), Choice::Split(..)));
    }

    /// A half had recorded the loss of a drive and gone on; then the power was cut whenever it recorded another. None of its labels
    /// was complete, and the lost drive, which had been started alone, was served as if nothing had been.
    #[test]
    fn a_half_that_was_cut_again_and_again_is_not_forgotten() {
        let starts = [FIRST, (8, 0xc)];
        let cut = |own, generation, settled, first: (MemberState, u64)| {
            let members = [(0, Lost, 3), (1, first.0, first.1), (2, Active, 0), (3, Active, 0)];
            let mut cut = mirror(own, generation, &starts, &members);
            cut.label.settled = settled;
            cut
        };
        let alone =
            mirror(0, 9, &[FIRST, (7, 0xb)], &[(0, Active, 0), (1, Lost, 7), (2, Lost, 7), (3, Lost, 7)]);
        let (b, c, d) = (cut(1, 8, 6, (Active, 0)), cut(2, 8, 6, (Active, 0)), cut(3, 7, 6, (Lost, 7)));
        assert!(matches!(choice(&[alone.clone(), b, c, d.clone()]), Choice::Split(..)));
        // It was believed again by the last resort, after a start of all of them.
        let starts = [FIRST, (4, 0xa1), (9, 0xb)];
        let again =
            |own| mirror(own, 12, &starts, &[(0, Active, 0), (1, Active, 0), (2, Active, 0), (3, Lost, 9)]);
        let mut left_out = cut(3, 7, 6, (Active, 0));
        left_out.label.starts = Starts::of(&starts[..2]);
        assert_eq!(choice(&[again(0), again(1), left_out]), Choice::One(0));
        // The same without those that were active: what is left of the half tells it.
        assert!(matches!(choice(&[alone, d]), Choice::Split(..)));
    }

    /// A drive of a copy of the array that had been served elsewhere was taken for the array's own: as many
    /// generations, and no drive lost.
    #[test]
    fn a_drive_of_a_copy_that_was_served_elsewhere_is_another_history() {
        let of_copy = |own, generation, settled| {
            let mut of_copy = superblock(own, generation, settled, &[]);
            of_copy.label.starts = Starts::of(&[(1, 0xa), (8, 0xb)]);
            of_copy
        };
        let own = |own, generation, settled| {
            let mut own = superblock(own, generation, settled, &[]);
            own.label.starts = Starts::of(&[(1, 0xa), (9, 0xc)]);
            own
        };
        for generation in [9, 10, 40] {
            let all = [own(0, 10, 9), of_copy(1, generation, generation - 1), own(2, 10, 9), own(3, 10, 9)];
            let labels: Vec<&Superblock> = all.iter().collect();
            assert!(is_of_another_history(labels[0], labels[1]), "{generation}");
            assert!(!labels.iter().any(|own| is_rolled_back(own, &labels)), "{generation}");
            let (own, copied) = (vec![0, 2, 3], vec![1]);
            let sides = [Choice::Split(own.clone(), copied.clone()), Choice::Split(copied, own)];
            assert!(sides.contains(&choice(&all)), "{generation}");
        }
        // The start elsewhere ended before anything was served: it is an older image and no more.
        let begun = of_copy(1, 8, 7);
        assert!(!is_of_another_history(&own(0, 10, 9), &begun));
        assert!(is_rolled_back(&begun, &[&begun, &own(0, 10, 9)]));
        // It was served before the start that the other forgot to complete, or by a program that remembers no starts.
        let mut old = superblock(1, 9, 8, &[]);
        old.label.starts = Starts::default();
        assert!(!is_of_another_history(&own(0, 10, 9), &old));
        // It was started so often that it has forgotten who served the other.
        let mut often = of_copy(1, 40, 39);
        often.label.starts = Starts::of(&[(30, 0xd), (35, 0xe)]);
        assert!(is_of_another_history(&own(0, 10, 9), &often));
        assert!(!is_rolled_back(&own(0, 10, 9), &[&own(0, 10, 9), &often]));
        // That the array has lost it since does not make a stale drive of it: it was served elsewhere, which was not told.
        let mut without = own(0, 12, 9);
        without.label.members[1].state = MemberState::Lost;
        assert_eq!(choice(&[without.clone(), of_copy(1, 11, 10)]), Choice::Split(vec![0], vec![1]));
        assert_eq!(choice(&[without, begun]), Choice::One(0));
    }

    /// A start that no drive but one has heard of is no other history.
    #[test]
    fn a_start_that_was_interrupted_is_no_history() {
        let mut interrupted = superblock(0, 6, 5, &[]);
        interrupted.label.starts = Starts::of(&[(1, 0xa), (6, 0xb)]);
        let mut next = superblock(1, 9, 8, &[]);
        next.label.starts = Starts::of(&[(1, 0xa), (8, 0xc)]);
        assert!(!is_of_another_history(&interrupted, &next));
        assert!(is_rolled_back(&interrupted, &[&interrupted, &next]));
    }

    #[test]
    fn an_older_image_is_known_by_what_was_complete() {
        let (old, newest) = (superblock(0, 4, 3, &[]), superblock(1, 7, 6, &[]));
        assert!(is_rolled_back(&old, &[&old, &newest]));
        assert!(!is_rolled_back(&newest, &[&old, &newest]));
        // It missed the last generation, which was interrupted.
        let behind = superblock(0, 6, 5, &[]);
        assert!(!is_rolled_back(&behind, &[&behind, &newest]));
        // Who is lost need not be rolled back to be behind.
        let without = superblock(1, 9, 8, &[0]);
        assert!(!is_rolled_back(&old, &[&old, &without]));
    }
}
