//! Screenshots compared with each other, so that no picture has to be kept and none depends on this very browser.

use crate::common::browser::{Browser, Picture};

/// Part of the pixels by which two pictures of the same may differ.
pub(super) const MAX_DIFFERENCE: f64 = 0.001;

/// Pictures of a page, light and dark, narrow and wide, in the order (light, narrow), (light, wide), (dark, narrow), (dark, wide): each
/// is again the same, and each shows something; those of one width differ where dark is dark.
pub(super) fn check(page: &str, pictures: &[(String, Browser<'_>, Picture)]) {
    for (name, browser, picture) in pictures {
        // Text, bars of eight colours, and edges of letters.
        assert!(picture.colours() > 100, "{name}: {} colours", picture.colours());
        let again = browser.open(&format!("page-again-{}", name.replace(' ', "-")), page);
        let difference = picture.difference(&again.picture);
        assert!(
            difference < MAX_DIFFERENCE,
            "{name}: {difference} of its pixels differ the second time"
        );
    }
    let [light_narrow, light_wide, dark_narrow, dark_wide] = pictures else {
        panic!("{} pictures", pictures.len());
    };
    assert!(light_narrow.2.width < light_wide.2.width);
    for (light, dark) in [(light_narrow, dark_narrow), (light_wide, dark_wide)] {
        let difference = light.2.difference(&dark.2);
        assert!(difference > 0.9, "{}: only {difference} differ from {}", dark.0, light.0);
        let (light, dark) = (light.2.brightness(), dark.2.brightness());
        assert!(light > 200.0 && dark < 70.0, "{light} and {dark}");
    }
}
