//! SQL templates: `{name}` stands for a checked identifier, quoted.

use super::identifier::Identifier;

/// Puts quoted names into a template.
#[must_use]
pub fn render(template: &str, names: &[(&str, &Identifier)]) -> String {
    let mut text = template.to_owned();
    for (name, identifier) in names {
        text = text.replace(&format!("{{{name}}}"), &identifier.quoted());
    }
    text
}
