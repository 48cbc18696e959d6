package stream

import "blis/pkg/registry"

// Tiers of SLO classes: what gives way, from the last to the first, when there
// is too much work.
var Tiers = []string{"critical", "standard", "sheddable"}

// Classes are the SLO classes that need no declaration. They promise nothing:
// targets are a workload's.
var Classes = registry.Table[SLOClass]{
	class("critical", "critical", 100, "must be served"),
	class("realtime", "critical", 100, "somebody waits for every token"),
	class("standard", "standard", 50, "ordinary work"),
	class("interactive", "standard", 50, "somebody reads along"),
	class("batch", "sheddable", 10, "work that can wait"),
	class("best-effort", "sheddable", 0, "served when there is room"),
	class("sheddable", "sheddable", 0, "the first to give way"),
}

func class(name, tier string, priority float64, doc string) registry.Entry[SLOClass] {
	return registry.Entry[SLOClass]{Name: name, Doc: doc, Value: SLOClass{Name: name, Tier: tier, Priority: priority}}
}
