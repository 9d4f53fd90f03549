//! Closed lists of words, such as the states of an order.

/// Declares an enum of words: it is read from JSON text, refuses every other word by name, and becomes a text
/// [`Value`](crate::Value).
///
/// ```
/// projector_sdk::words! {
///     /// Where an order stands.
///     pub enum Status {
///         /// Waiting.
///         Pending = "pending",
///         /// Over.
///         Done = "done",
///     }
/// }
///
/// assert_eq!(Status::Done.as_str(), "done");
/// assert_eq!(Status::from_word("pending"), Some(Status::Pending));
/// assert_eq!(Status::from_word("PENDING"), None);
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[$word_meta:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$word_meta])* $variant,)+
        }

        impl $name {
            /// Every word, in declared order.
            $vis const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The case of this word.
            #[must_use]
            $vis fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl ::core::convert::From<$name> for $crate::Value {
            fn from(word: $name) -> Self {
                Self::Text($crate::Text::new(word.as_str()))
            }
        }

        impl ::core::convert::From<$name> for $crate::KeyValue {
            fn from(word: $name) -> Self {
                Self::Value(word.into())
            }
        }

        impl<'de> $crate::__private::serde::Deserialize<'de> for $name {
            fn deserialize<D>(deserializer: D) -> ::core::result::Result<Self, D::Error>
            where
                D: $crate::__private::serde::Deserializer<'de>,
            {
                $crate::__private::word(deserializer, &[$($word,)+], Self::from_word)
            }
        }
    };
}
