// SPDX-License-Identifier: Apache-2.0

// The options of a cluster and their flags.

package cluster

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// maxNodes is the number of nodes that Kubernetes is tested with.
const maxNodes = 5000

// optional returns the components that -without may leave out.
func optional() []string { return []string{ControllerManager, Scheduler, Kwok} }

// Options are the options of a cluster.
type Options struct {
	// DataDir is the data folder; "" means a new temporary folder.
	DataDir string
	// Keep leaves the data when the cluster stops.
	Keep bool
	// Kubeconfig is the path for the administrator's kubeconfig; "" means a file in the
	// data folder.
	Kubeconfig string
	// Ports are the requested ports; 0 means any free one.
	Ports Ports
	// Nodes is the number of nodes.
	Nodes int
	// Without names components that are not started.
	Without []string
	// AuditBodies names the resources whose bodies the audit log contains, such as
	// deployments.apps.
	AuditBodies []string
	// EmulatedVersion is the minor version of Kubernetes that the components emulate,
	// such as 1.35; "" means their own.
	EmulatedVersion string
	// Verbose prints each component's command line.
	Verbose bool
}

// AddFlags defines the flags.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", "",
		"`folder` for the cluster's data, created if missing (default a new temporary folder)")
	fs.BoolVar(&o.Keep, "keep", false,
		"keep the data when the cluster stops: a later start with the same -data-dir has the same objects")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "",
		"`file` to write the administrator's kubeconfig to (default kubeconfig in the data folder)")
	for _, p := range o.Ports.named() {
		fs.IntVar(p.port, p.flag, 0, "`port` of "+p.of)
	}
	fs.IntVar(&o.Nodes, "nodes", 1, "`number` of nodes")
	fs.Func("without", "comma-separated `components` not to start, of "+strings.Join(optional(), ", "),
		listInto(&o.Without))
	fs.Func("audit-bodies", "comma-separated `resources`, such as deployments.apps,pods, "+
		"whose request and response bodies audit.log contains", listInto(&o.AuditBodies))
	fs.StringVar(&o.EmulatedVersion, "emulated-version", "", "minor `version` of Kubernetes that the API server, "+
		"the controller manager and the scheduler emulate, one of "+
		strings.Join(EmulatedVersions(), ", ")+" (default their own, the last)")
	fs.BoolVar(&o.Verbose, "v", false, "print the command line of each component")
}

// listInto returns a function that parses a comma-separated list into names.
func listInto(names *[]string) func(list string) error {
	return func(list string) error {
		*names = nil
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" {
				*names = append(*names, name)
			}
		}
		return nil
	}
}

// Validate returns an error of one line for invalid options.
func (o *Options) Validate() error {
	for _, p := range o.Ports.named() {
		if *p.port < 0 || *p.port > 65535 {
			return fmt.Errorf("-%s %d: must be a port from 0 to 65535", p.flag, *p.port)
		}
	}
	taken := map[int]string{}
	for _, p := range o.Ports.named() {
		if other, ok := taken[*p.port]; ok && *p.port != 0 {
			return fmt.Errorf("-%s and -%s are both %d; use different ports, or 0 for any free one", other, p.flag, *p.port)
		}
		taken[*p.port] = p.flag
	}
	if o.Nodes < 0 || o.Nodes > maxNodes {
		return fmt.Errorf("-nodes %d: must be from 0 to %d", o.Nodes, maxNodes)
	}
	for _, name := range o.Without {
		if !slices.Contains(optional(), name) {
			return fmt.Errorf("-without %s: unknown component, or one that is always needed; choose from %s",
				name, strings.Join(optional(), ", "))
		}
	}
	for _, name := range o.AuditBodies {
		if strings.ContainsAny(name, "/ ") {
			return fmt.Errorf("-audit-bodies %s: must be RESOURCE or RESOURCE.GROUP; subresources are included", name)
		}
	}
	return checkEmulatedVersion(o.EmulatedVersion)
}

// runs reports whether a component is to be started.
func (o *Options) runs(component string) bool { return !slices.Contains(o.Without, component) }

// Ports are the ports that the components listen on, all at 127.0.0.1.
type Ports struct {
	API, Etcd, EtcdPeer, ControllerManager, Scheduler int
}

type namedPort struct {
	flag string
	port *int
	of   string // for the help
}

// named pairs each port with its flag.
func (p *Ports) named() []namedPort {
	return []namedPort{
		{"api-port", &p.API, "kube-apiserver on 127.0.0.1; 0 means any free one, for all ports"},
		{"etcd-port", &p.Etcd, "etcd for its clients"},
		{"etcd-peer-port", &p.EtcdPeer, "etcd for peers, although there are none"},
		{"kube-controller-manager-port", &p.ControllerManager, "kube-controller-manager, for health and metrics"},
		{"kube-scheduler-port", &p.Scheduler, "kube-scheduler, for health and metrics"},
	}
}
