// SPDX-License-Identifier: Apache-2.0

// Who made a request.

package audit

import "strings"

// The names of kubelets, and of kwok, which simulates them in the development cluster.
const (
	Kubelet     = "kubelet"
	KwokKubelet = "kwok (as kubelet)"
)

// Actor is a person, a program or a part of the cluster that makes requests.
type Actor struct {
	// Name is short, and two actors may have the same; Full is unique.
	Name, Full string
	// System is true for parts of the cluster and service accounts; the others are people
	// and their programs.
	System bool
	// ByHand is true for kubectl, and for clients whose user agent has no name.
	ByHand bool
}

const (
	systemUser     = "system:"
	serviceAccount = "system:serviceaccount:"
	nodeUser       = "system:node:"
)

// ActorOf returns who made a request. One user may be several actors: a controller that
// runs with an administrator's kubeconfig gets the name of its program.
func ActorOf(w Write) Actor {
	byHand := strings.HasPrefix(program(w.Agent), "kubectl")
	tool := ""
	if byHand {
		tool = " (kubectl)"
	}
	user := w.User
	if user == "system:kube-controller-manager" {
		// Controllers without credentials of their own name themselves in the user agent.
		if i := strings.Index(w.Agent, serviceAccount); i >= 0 {
			user = w.Agent[i:]
		}
	}
	switch {
	case user == "":
		return Actor{Name: "unknown", Full: "no user"}
	case user == "kwok":
		return Actor{Name: KwokKubelet, Full: user, System: true}
	case strings.HasPrefix(user, nodeUser):
		return Actor{Name: Kubelet, Full: strings.TrimSuffix(nodeUser, ":"), System: true}
	case strings.HasPrefix(user, serviceAccount):
		namespace, name, _ := strings.Cut(strings.TrimPrefix(user, serviceAccount), ":")
		name = strings.TrimPrefix(name, "generic-")
		return Actor{Name: name, Full: namespace + "/" + name + tool, System: !byHand, ByHand: byHand}
	case strings.HasPrefix(user, systemUser) && !byHand && user != "system:admin" && user != "system:anonymous":
		return Actor{Name: strings.TrimPrefix(user, systemUser), Full: user, System: true}
	case byHand || program(w.Agent) == "":
		if !strings.HasPrefix(user, systemUser) {
			tool = ""
		}
		return Actor{Name: strings.TrimPrefix(user, systemUser), Full: user + tool, ByHand: true}
	}
	return Actor{Name: program(w.Agent), Full: program(w.Agent) + " (" + user + ")"}
}
