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
    items: RefCell<Rc<Vec<Value>>>,
}

impl List {
    /// Returns a `[]interface {}` of `items`.
    pub fn new(items: Vec<Value>) -> Self {
        Self::of(&ListType::ANY, items)
    }

    /// Returns a list of type `class`.
    pub fn of(class: &'static ListType, items: Vec<Value>) -> Self {
        Self(Rc::new(Shared { class, nil: false, items: RefCell::new(Rc::new(items)) }))
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
        Rc::clone(&self.0.items.borrow())
    }

    /// Returns the element at `index`.
    pub fn get(&self, index: usize) -> Option<Value> {
        self.0.items.borrow().get(index).cloned()
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
        let before = self.0.items.replace(Rc::new(items));
        drop(before);
    }

    /// Reports whether both are the same list.
    pub fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the elements if nobody else holds this list.
    pub(super) fn into_children(self) -> Option<Vec<Value>> {
        let shared = Rc::into_inner(self.0)?;
        Rc::try_unwrap(shared.items.take()).ok()
    }
}

/// Deep lists are taken apart without recursion.
impl Drop for Shared {
    fn drop(&mut self) {
        if let Ok(items) = Rc::try_unwrap(self.items.take()) {
            bury(items);
        }
    }
}
