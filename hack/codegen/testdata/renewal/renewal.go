// Package renewal is in a module that go.mod replaces by a directory.
package renewal

// Window has no markers of any generator.
type Window struct {
	Days int32 `json:"days"`
}
