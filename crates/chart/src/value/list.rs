//! Lists: Go slices.

use std::cell::RefCell;
use std::rc::Rc;

use super::map::bury;
use super::{ListType, Value};

/// A list that is shared by all its clones.
///
/// Functions that add or drop elements make a new list, as Go's do; only sorting
/// a `[]string` happens in place.
#[derive(Clone)]
pub struct List(Rc<Shared>);

struct Shared {
    class: &'static ListType,
    nil: bool,
    items: RefCell<Items>,
}

/// The elements, which are put together when somebody asks for them: a loop that appends to a list would copy it each time.
#[derive(Clone)]
enum Items {
    All(Rc<Vec<Value>>),
    With(Rc<Link>),
}

/// The elements of another list, as they were, and one more.
struct Link {
    before: Items,
    item: Value,
    end: End,
    len: usize,
    /// How many links there are until there are all elements at once.
    links: usize,
}

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}

/// How many lists may be behind one another: looking up what was added takes as many steps.
const MAX_LINKS: usize = 256;

impl Default for Items {
    fn default() -> Self {
        Self::All(Rc::default())
    }
}

impl List {
    /// Returns a `[]interface {}` of `items`.
    pub fn new(items: Vec<Value>) -> Self {
        Self::of(&ListType::ANY, items)
    }

    /// Returns a list of type `class`.
    pub fn of(class: &'static ListType, items: Vec<Value>) -> Self {
        Self::made(class, Items::All(Rc::new(items)))
    }

    fn made(class: &'static ListType, items: Items) -> Self {
        Self(Rc::new(Shared { class, nil: false, items: RefCell::new(items) }))
    }

    /// Returns a `[]interface {}` of these elements and one more at an end; this list stays as it is.
    #[must_use]
    pub(crate) fn with(&self, item: Value, end: End) -> Self {
        let before = self.0.items.borrow().clone();
        let (len, links) = (before.len() + 1, before.links() + 1);
        let link = Link { before, item, end, len, links };
        let list = Self::made(&ListType::ANY, Items::With(Rc::new(link)));
        if links >= MAX_LINKS {
            list.items();
        }
        list
    }

    /// Returns how many bytes one more element takes, and the elements that were put together since the last one was added.
    pub(crate) fn bytes_of_one_more(&self) -> usize {
        let before = match &*self.0.items.borrow() {
            Items::All(items) => items.len() * size_of::<Value>(),
            Items::With(_) => 0,
        };
        before + size_of::<Link>() + size_of::<Shared>()
    }

    /// Returns the nil slice of type `class`, which JSON writes as `null`.
    pub fn nil(class: &'static ListType) -> Self {
        Self(Rc::new(Shared { class, nil: true, items: RefCell::default() }))
    }

    /// Returns the type.
    pub fn class(&self) -> &'static ListType {
        self.0.class
    }

    /// Reports whether this is a nil slice.
    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    /// Returns the elements as they are now; later changes are not seen.
    pub fn items(&self) -> Rc<Vec<Value>> {
        let items = match &*self.0.items.borrow() {
            Items::All(items) => return Rc::clone(items),
            Items::With(link) => Rc::new(link.joined()),
        };
        let before = self.0.items.replace(Items::All(Rc::clone(&items)));
        drop(before);
        items
    }

    /// Returns the element at `index`.
    pub fn get(&self, index: usize) -> Option<Value> {
        self.items().get(index).cloned()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.0.items.borrow().len()
    }

    /// Reports whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts `items` in place of the elements, for everybody who holds this list.
    pub fn replace(&self, items: Vec<Value>) {
        let before = self.0.items.replace(Items::All(Rc::new(items)));
        drop(before);
    }

    /// Reports whether both are the same list.
    pub fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the elements if nobody else holds this list.
    pub(super) fn into_children(self) -> Option<Vec<Value>> {
        Some(Rc::into_inner(self.0)?.items.take().into_values())
    }
}

impl Items {
    fn len(&self) -> usize {
        match self {
            Self::All(items) => items.len(),
            Self::With(link) => link.len,
        }
    }

    fn links(&self) -> usize {
        match self {
            Self::All(_) => 0,
            Self::With(link) => link.links,
        }
    }

    /// Returns what only these elements hold, without the links.
    fn into_values(mut self) -> Vec<Value> {
        let mut values = Vec::new();
        loop {
            let link = match self {
                Self::All(items) => {
                    values.extend(Rc::try_unwrap(items).unwrap_or_default());
                    return values;
                }
                Self::With(link) => Rc::into_inner(link),
            };
            let Some(link) = link else { return values };
            values.push(link.item);
            self = link.before;
        }
    }
}

impl Link {
    /// Returns all elements.
    fn joined(&self) -> Vec<Value> {
        let (mut all, mut back) = (Vec::with_capacity(self.len), Vec::new());
        let mut link = self;
        loop {
            match link.end {
                End::Front => all.push(link.item.clone()),
                End::Back => back.push(link.item.clone()),
            }
            match &link.before {
                Items::All(items) => all.extend(items.iter().cloned()),
                Items::With(before) => {
                    link = before;
                    continue;
                }
            }
            all.extend(back.into_iter().rev());
            return all;
        }
    }
}

/// Deep lists are taken apart without recursion.
impl Drop for Shared {
    fn drop(&mut self) {
        bury(self.items.take().into_values());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(list: &List) -> Vec<i64> {
        list.items().iter().filter_map(Value::as_i64).collect()
    }

    #[test]
    fn elements_are_added_at_both_ends_and_the_lists_before_stay_as_they_are() {
        let first = List::new(vec![Value::Int(0)]);
        let mut list = first.clone();
        let mut all = Vec::new();
        for number in 1..1_000 {
            let end = if number % 3 == 0 { End::Front } else { End::Back };
            list = list.with(Value::Int(number), end);
            all.push(list.clone());
        }
        assert_eq!(numbers(&first), [0]);
        for (list, last) in all.iter().zip(1..) {
            let mut expected: Vec<i64> = (1..=last).rev().filter(|number| number % 3 == 0).collect();
            expected.push(0);
            expected.extend((1..=last).filter(|number| number % 3 != 0));
            assert_eq!(list.len(), expected.len());
            assert_eq!(numbers(list), expected);
        }
    }

    #[test]
    fn sorting_a_list_in_place_changes_none_that_was_made_of_it() {
        let texts = List::of(&ListType::STRINGS, ["b", "a"].map(Value::text).to_vec());
        let longer = texts.with(Value::text("c"), End::Back);
        texts.replace(["a", "b"].map(Value::text).to_vec());
        let found: Vec<_> = longer.items().iter().map(|item| item.as_text().cloned()).collect();
        assert_eq!(found, ["b", "a", "c"].map(|text| Some(text.into())));
    }

    #[test]
    fn lists_in_lists_that_were_appended_are_dropped_without_recursion() {
        let mut list = List::new(Vec::new());
        for _ in 0..1_000_000 {
            list = List::new(Vec::new()).with(Value::List(list), End::Back);
        }
        drop(list);
    }
}
