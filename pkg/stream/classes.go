package stream

import "blis/pkg/registry"

// Tiers of SLO classes, from the most to the least important: under overload,
// later ones are shed first.
var Tiers = []string{"critical", "standard", "sheddable"}

// Classes are the predefined SLO classes. They have no targets: a workload
// declares those.
var Classes = registry.Table[SLOClass]{
	class("critical", "critical", 100, "must be served"),
	class("realtime", "critical", 100, "a user waits for every token"),
	class("standard", "standard", 50, "ordinary requests"),
	class("interactive", "standard", 50, "a user reads along"),
	class("batch", "sheddable", 10, "requests that can wait"),
	class("best-effort", "sheddable", 0, "served when capacity is left"),
	class("sheddable", "sheddable", 0, "shed first"),
}

func class(name, tier string, priority float64, doc string) registry.Entry[SLOClass] {
	return registry.Entry[SLOClass]{Name: name, Doc: doc, Value: SLOClass{Name: name, Tier: tier, Priority: priority}}
}
